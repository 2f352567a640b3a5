/**
 * Writes the Items of the hardware section in oVirt's order and form: CPU, memory, disks, interfaces, everything else.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { printAddressText } from '#formats/address-text.ts';
import type { DescribedDisk, DescribedNic, MachineDescription } from '#formats/machine.ts';
import { instanceId } from '#formats/ovf/instance-id.ts';
import { printSpecParams } from '#formats/ovf/spec-params.ts';
import { RESOURCE, subTypeOfModel } from '#formats/ovf/vocabulary.ts';
import { leaf, xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

type Attributes = Record<string, string | number | boolean | undefined>;

export function writeItems(machine: MachineDescription): XmlOutput[] {
  const rows = new Map(machine.rows.map((row) => [row.id, row]));
  const own = new Set([...machine.disks, ...machine.nics].map(({ id }) => id));
  return [
    cpuItem(machine),
    memoryItem(machine),
    ...machine.disks.map((disk) => diskItem(machine, disk, rows.get(disk.id))),
    ...machine.nics.map((nic) => nicItem(machine, nic, rows.get(nic.id))),
    ...machine.rows.filter(({ id }) => !own.has(id)).map((row) => otherItem(machine, row)),
  ];
}

function buildItem(
  attributes: Attributes,
  caption: string,
  id: string,
  type: number,
  more: readonly (XmlOutput | undefined)[],
): XmlOutput {
  const own = Object.fromEntries(Object.entries(attributes).map(([key, value]) => [`selfsame:${key}`, value]));
  return xml('Item', own, [
    leaf('rasd:Caption', caption),
    leaf('rasd:InstanceId', id),
    leaf('rasd:ResourceType', type),
    ...more,
  ]);
}

function cpuItem({ cpu: { sockets, cores, threads } }: MachineDescription): XmlOutput {
  const all = sockets * cores * threads;
  return buildItem({}, `${all} virtual cpu`, '1', RESOURCE.cpu, [
    leaf('rasd:num_of_sockets', sockets),
    leaf('rasd:cpu_per_socket', cores),
    leaf('rasd:threads_per_cpu', threads),
    leaf('rasd:VirtualQuantity', all),
  ]);
}

function memoryItem({ memoryMib }: MachineDescription): XmlOutput {
  return buildItem({}, `${memoryMib} MB of memory`, '2', RESOURCE.memory, [
    leaf('rasd:AllocationUnits', 'MegaBytes'),
    leaf('rasd:VirtualQuantity', memoryMib),
  ]);
}

function diskItem(machine: MachineDescription, disk: DescribedDisk, row: LearnedDevice | undefined): XmlOutput {
  const { id, name, media, bus, optional, serial, cache, hotpluggable, lun, sizeBytes, format } = disk;
  const image = instanceId(machine, `${id}/image`);
  const isData = media === 'disk' || media === 'lun';
  const inFile = disk.file === undefined ? undefined : `ovf:/file/${image}`;
  const details = isData ? {} : { size: sizeBytes, format };
  const luns = { 'lun-guid': lun?.guid, 'lun-uuid': lun?.uuid };
  const more = { optional: optional || undefined, serial, cache, hotpluggable };
  const type = { disk: RESOURCE.disk, lun: RESOURCE.disk, cdrom: RESOURCE.cdrom, floppy: RESOURCE.floppy }[media];
  return buildItem(
    { id, name, media, bus, ...more, ...luns, ...details },
    name,
    isData ? image : instanceId(machine, id),
    type,
    [
      leaf('rasd:HostResource', isData ? `${instanceId(machine, id)}/${image}` : inFile),
      ...deviceBlock('disk', media, { ...disk, address: row?.address, specParams: row?.specParams }),
    ],
  );
}

function nicItem(machine: MachineDescription, nic: DescribedNic, row: LearnedDevice | undefined): XmlOutput {
  const { id, name, model, network, mac } = nic;
  return buildItem(
    { id, name, model, network },
    `Ethernet adapter on ${network ?? '[No Network]'}`,
    instanceId(machine, id),
    RESOURCE.network,
    [
      leaf('rasd:ResourceSubType', subTypeOfModel(model)),
      leaf('rasd:Connection', network),
      leaf('rasd:Linked', true),
      leaf('rasd:Name', name),
      leaf('rasd:ElementName', name),
      leaf('rasd:MACAddress', mac),
      ...deviceBlock('interface', 'bridge', {
        ...nic,
        readonly: row?.readonly,
        address: row?.address,
        specParams: row?.specParams,
      }),
    ],
  );
}

/** Uses oVirt's words for type and device; ours are in the attributes. */
function otherItem(machine: MachineDescription, row: LearnedDevice): XmlOutput {
  const { id, type, device, name, managed } = row;
  const ovirtDevice = type === 'controller' && device === 'pcie-root-port' ? 'pci' : type === 'tpm' ? 'tpm' : device;
  return buildItem(
    { id, type, device, name, managed },
    id,
    instanceId(machine, id),
    resourceOf(row),
    deviceBlock(type, ovirtDevice, row),
  );
}

function resourceOf({ type, device }: LearnedDevice): number {
  if (type === 'video') return RESOURCE.monitor;
  if (type === 'graphics') return RESOURCE.graphics;
  return type === 'controller' && device === 'usb' ? RESOURCE.usb : RESOURCE.other;
}

type Block = Pick<LearnedDevice, 'id' | 'address' | 'bootOrder' | 'plugged' | 'readonly' | 'specParams'>;

function deviceBlock(type: string, device: string, block: Block): (XmlOutput | undefined)[] {
  const { id, address = {}, bootOrder = 0, plugged = true, readonly = false, specParams } = block;
  const text = printAddressText(address);
  return [
    leaf('Type', type),
    leaf('Device', device),
    leaf('rasd:Address', text ?? ''),
    text === undefined ? printSpecParams('selfsame:AddressEntries', address) : undefined,
    leaf('BootOrder', bootOrder),
    leaf('IsPlugged', plugged),
    leaf('IsReadOnly', readonly),
    leaf('Alias', id),
    printSpecParams('SpecParams', specParams),
  ];
}
