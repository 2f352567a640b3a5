/**
 * Writes libvirt domains: the recorded machine, each device with its address and with our id as alias. Notes name the
 * parts that libvirt cannot represent.
 */
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { USER_ALIAS } from '#formats/libvirt/element-parts.ts';
import { writeOtherDevice } from '#formats/libvirt/write-other-devices.ts';
import { assignTargetNames } from '#formats/libvirt/target-names.ts';
import type { DescribedDisk, DescribedNic, MachineDescription } from '#formats/machine.ts';
import { isXmlName, leaf, printXml, xml, type XmlOutput } from '#lib/xml/xml-writer.ts';

interface LibvirtDomain {
  readonly xml: string;
  readonly notes: readonly string[];
}

interface LibvirtOptions {
  /** The directory of files with relative paths. Default: /var/lib/libvirt/images. */
  readonly imageDirectory?: string;
}

/** Throws a TypeError if a text of the machine has characters that XML cannot represent. */
export function writeLibvirt(machine: MachineDescription, options: LibvirtOptions = {}): LibvirtDomain {
  const { imageDirectory = '/var/lib/libvirt/images' } = options;
  const notes = [...machine.notes];
  if (machine.state !== undefined) notes.push('the persistent state of TPM and EFI is not written: both start empty');
  for (const { name, cloudInit } of machine.disks) {
    if (cloudInit !== undefined)
      notes.push(`the cloud-init data of the disk ${name} is not written: it has no content`);
  }
  const { name, uuid, serial, memoryMib, cpu } = machine;
  const vcpus = cpu.sockets * cpu.cores * cpu.threads;
  const root = xml('domain', { type: 'kvm' }, [
    leaf('name', name),
    leaf('uuid', uuid),
    xml('memory', { unit: 'MiB' }, String(memoryMib)),
    xml('vcpu', { placement: 'static' }, String(vcpus)),
    osElement(machine),
    serial === undefined
      ? undefined
      : xml('sysinfo', { type: 'smbios' }, [xml('system', {}, [xml('entry', { name: 'serial' }, serial)])]),
    xml('features', {}, [
      xml('acpi'),
      xml('apic'),
      machine.firmware === 'efi-secure' ? xml('smm', { state: 'on' }) : undefined,
    ]),
    cpuElement(machine),
    xml('devices', {}, deviceElements(machine, imageDirectory, notes)),
  ]);
  return { xml: printXml(root), notes };
}

function osElement({ machineType, chipset, firmware, serial }: MachineDescription): XmlOutput {
  const machine = machineType ?? (chipset === 'i440fx' ? 'pc' : 'q35');
  const isEfi = firmware !== 'bios';
  return xml('os', { firmware: isEfi ? 'efi' : undefined }, [
    xml('type', { arch: 'x86_64', machine }, 'hvm'),
    isEfi ? xml('loader', { secure: firmware === 'efi-secure' ? 'yes' : 'no' }) : undefined,
    serial === undefined ? undefined : xml('smbios', { mode: 'sysinfo' }),
  ]);
}

function cpuElement({ cpu: { sockets, cores, threads, model } }: MachineDescription): XmlOutput {
  const isMode = model === 'host-passthrough' || model === 'host-model' || model === undefined;
  const named = isMode ? undefined : leaf('model', model);
  return xml('cpu', { mode: isMode ? (model ?? 'host-model') : 'custom' }, [
    named,
    xml('topology', { sockets, cores, threads }),
  ]);
}

function deviceElements(machine: MachineDescription, imageDirectory: string, notes: string[]): XmlOutput[] {
  const own = new Set([...machine.disks, ...machine.nics].map(({ id }) => id));
  const addresses = libvirtAddresses(machine);
  const isQ35 = machine.chipset !== 'i440fx';
  const root = xml('controller', { type: 'pci', index: 0, model: isQ35 ? 'pcie-root' : 'pci-root' });
  const targets = assignTargetNames(machine);
  const disks = machine.disks.filter((disk) => isPlugged(disk, notes));
  const nics = machine.nics.filter((nic) => isPlugged(nic, notes));
  const others = machine.rows
    .filter(({ id, plugged }) => !own.has(id) && plugged !== false)
    .map((row) => ({ row, element: writeOtherDevice(row, commonElements(row.id, undefined, addresses)) }));
  for (const { row, element } of others) {
    if (element === undefined) notes.push(`the device ${row.id} (${row.type} ${row.device}) is not written`);
  }
  const has = (is: (row: LearnedDevice) => boolean) => machine.rows.some((row) => row.plugged !== false && is(row));
  const hasBalloon = has(({ type }) => type === 'balloon');
  const hasUsb = has(usesUsb) || disks.some(({ bus }) => bus === 'usb');
  return [
    root,
    ...disks.map((disk) => diskElement(disk, targets.get(disk.id) ?? 'vda', imageDirectory, addresses)),
    ...nics.map((nic) => nicElement(nic, addresses)),
    ...others.flatMap(({ element }) => element ?? []),
    // Explicit, because libvirt would add them. The USB controller of i440fx is part of the chipset.
    ...(hasBalloon ? [] : [xml('memballoon', { model: 'none' })]),
    ...(hasUsb || !isQ35 ? [] : [xml('controller', { type: 'usb', index: 0, model: 'none' })]),
  ];
}

/** Reports whether the device is a USB controller, or needs one. */
function usesUsb({ type, device, specParams }: LearnedDevice): boolean {
  if (type === 'controller') return device === 'usb' || device === 'ccid';
  return type === 'redir' || type === 'smartcard' || specParams?.['bus'] === 'usb';
}

function isPlugged({ id, plugged }: DescribedDisk | DescribedNic, notes: string[]): boolean {
  if (!plugged) notes.push(`the device ${id} is not plugged, so it is not written`);
  return plugged;
}

/**
 * Returns the addresses, with `multifunction` where libvirt requires it: on function 0 of slots with several functions.
 */
function libvirtAddresses({ rows }: MachineDescription): ReadonlyMap<string, DeviceAddress> {
  const slotOf = ({ domain = '0', bus = '0', slot = '0' }: DeviceAddress) => [domain, bus, slot].map(Number).join(':');
  const known = rows.flatMap(({ id, address }) =>
    address === undefined || Object.keys(address).length === 0 ? [] : [[id, address] as const],
  );
  const shared = new Set(
    known.flatMap(([, address]) =>
      address['type'] === 'pci' && Number(address['function'] ?? 0) > 0 ? slotOf(address) : [],
    ),
  );
  return new Map(
    known.map(([id, address]) => {
      const isFirst =
        address['type'] === 'pci' && Number(address['function'] ?? 0) === 0 && shared.has(slotOf(address));
      return [id, isFirst ? { multifunction: 'on', ...address } : address];
    }),
  );
}

/** Returns the last elements of each device: boot order, alias and address. */
function commonElements(
  id: string,
  bootOrder: number | undefined,
  addresses: ReadonlyMap<string, DeviceAddress>,
): (XmlOutput | undefined)[] {
  const address = addresses.get(id);
  return [
    bootOrder === undefined ? undefined : xml('boot', { order: bootOrder }),
    xml('alias', { name: `${USER_ALIAS}${id}` }),
    address === undefined
      ? undefined
      : xml('address', Object.fromEntries(Object.entries(address).filter(([key]) => isXmlName(key)))),
  ];
}

function diskElement(
  disk: DescribedDisk,
  target: string,
  directory: string,
  addresses: ReadonlyMap<string, DeviceAddress>,
): XmlOutput {
  const { id, media, bus, format, file, lun, bootOrder, serial, readonly, optional, cache } = disk;
  const device =
    lun?.uuid === undefined ? lun?.guid && `/dev/disk/by-id/wwn-${lun.guid}` : `/dev/disk/by-uuid/${lun.uuid}`;
  const path = file === undefined || file.startsWith('/') ? file : `${directory}/${file}`;
  const startupPolicy = optional ? 'optional' : undefined;
  const source = device === undefined ? { file: path, startupPolicy } : { dev: device };
  const hasSource = (device ?? path) !== undefined;
  return xml('disk', { type: device === undefined ? 'file' : 'block', device: media }, [
    xml('driver', { name: 'qemu', type: format, cache }),
    hasSource ? xml('source', source) : undefined,
    xml('target', { dev: target, bus }),
    readonly ? xml('readonly') : undefined,
    leaf('serial', serial),
    ...commonElements(id, bootOrder, addresses),
  ]);
}

function nicElement(
  { id, model, mac, network, bootOrder }: DescribedNic,
  addresses: ReadonlyMap<string, DeviceAddress>,
): XmlOutput {
  const isUser = network === undefined || network === 'pod';
  return xml('interface', { type: isUser ? 'user' : 'bridge' }, [
    mac === undefined ? undefined : xml('mac', { address: mac }),
    isUser ? undefined : xml('source', { bridge: network }),
    xml('model', { type: model }),
    ...commonElements(id, bootOrder, addresses),
  ]);
}
