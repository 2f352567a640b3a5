/** The devices of a domain: disks, interfaces, and everything that has an address. */
import type { Chipset } from '#api/chipset.ts';
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import { ordersOf, type BootCandidate, type BootLetter } from '#formats/boot-sequence.ts';
import { UniqueNames } from '#formats/device-names.ts';
import { DeviceRows } from '#formats/device-rows.ts';
import { quoted, type Findings } from '#formats/faults.ts';
import { addressOf, bootOrderOf, ownId } from '#formats/libvirt/element-parts.ts';
import { otherDevice } from '#formats/libvirt/read-others.ts';
import { readDomainDisk, type DomainDisk } from '#formats/libvirt/read-disk.ts';
import { layOutDomain } from '#formats/libvirt/lay-out-domain.ts';
import type { DescribedNic, MachineDescription } from '#formats/machine.ts';
import { NO_FLOPPY, isPossibleModel, plainModel } from '#formats/possible.ts';
import { attributeOf, childNamed, childrenNamed, type XmlElement } from '#lib/xml.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

const MAX_DEVICES = 2048;
const NIC_PARTS = new Set(['mac', 'source', 'model', 'boot', 'alias', 'address', 'target', 'link', 'driver', 'guest']);

export interface DomainNic {
  readonly nic: DescribedNic;
  readonly element: XmlElement;
  /** The model there. */
  readonly model: string;
  readonly keepsAddress: boolean;
}

/** `letters`: the boot devices of `os`, where no device has an order of its own. */
export function readDomainDevices(
  devices: XmlElement | undefined,
  letters: readonly string[],
  chipset: Chipset | undefined,
  findings: Findings,
): Devices {
  const elements = devices?.children ?? [];
  if (elements.length > MAX_DEVICES) findings.fault(`there are ${elements.length} devices, more than ${MAX_DEVICES}`);
  const listed = elements.slice(0, MAX_DEVICES);
  const diskNames = new UniqueNames();
  const disks = listed
    .filter((element) => element.name === 'disk' && !isLeftOut(element, chipset, findings))
    .map((element) => readDomainDisk(element, diskNames, chipset, findings));
  const nicNames = new UniqueNames();
  const nics = listed
    .filter(({ name }) => name === 'interface')
    .map((element) => readNic(element, nicNames, chipset, findings));
  const orders = bootOrders(disks, nics, letters);
  const rows = new DeviceRows();
  for (const { disk, element, keepsAddress } of disks) {
    const { id, name, media, readonly } = disk;
    const address = keepsAddress ? addressOf(element) : undefined;
    rows.add({ id, type: 'disk', device: media, name, address, bootOrder: orders.get(id), managed: true, readonly });
  }
  for (const { nic, element, keepsAddress } of nics) {
    const { id, name, model } = nic;
    const address = keepsAddress ? addressOf(element) : undefined;
    rows.add({ id, type: 'interface', device: model, name, address, bootOrder: orders.get(id), managed: true });
  }
  const hasSerial = listed.some(({ name }) => name === 'serial');
  for (const element of listed) {
    if (element.name === 'disk' || element.name === 'interface') continue;
    const device = otherDevice(element, hasSerial, findings);
    if (device !== undefined) rows.addForeign(device);
  }
  const read = {
    disks: disks.map(({ disk }) => ({ ...disk, ...order(orders, disk.id) })),
    nics: nics.map(({ nic }) => ({ ...nic, ...order(orders, nic.id) })),
    rows: rows.rows,
  };
  return layOutDomain(read, { elements: listed, disks, nics, chipset }, findings);
}

function isLeftOut(element: XmlElement, chipset: Chipset | undefined, findings: Findings): boolean {
  const isLeft = attributeOf(element, 'device') === 'floppy' && chipset !== 'i440fx';
  if (isLeft) findings.note(`a floppy drive is left out: ${NO_FLOPPY}`);
  return isLeft;
}

function order(orders: ReadonlyMap<string, number>, id: string): { bootOrder?: number } {
  const bootOrder = orders.get(id);
  return bootOrder === undefined ? {} : { bootOrder };
}

function bootOrders(
  disks: readonly DomainDisk[],
  nics: readonly DomainNic[],
  letters: readonly string[],
): ReadonlyMap<string, number> {
  const said = [
    ...disks.map(({ disk, element }) => ({ id: disk.id, element })),
    ...nics.map(({ nic, element }) => ({ id: nic.id, element })),
  ].flatMap(({ id, element }) => {
    const bootOrder = bootOrderOf(element);
    return bootOrder === undefined ? [] : [[id, bootOrder] as const];
  });
  if (said.length > 0) return new Map(said);
  const candidates: BootCandidate[] = [
    ...disks.map(({ disk }) => ({ id: disk.id, kind: disk.media, plugged: true })),
    ...nics.map(({ nic }) => ({ id: nic.id, kind: 'nic' as const, plugged: true })),
  ];
  return ordersOf([...new Set(letters)] as BootLetter[], candidates);
}

function readNic(element: XmlElement, names: UniqueNames, chipset: Chipset | undefined, findings: Findings): DomainNic {
  const name = names.take(ownId(element)?.replace(/^nic-/, '') ?? '', 'nic');
  const left = element.children.filter((child) => !NIC_PARTS.has(child.name)).map((child) => child.name);
  if (left.length > 0) findings.note(`interface ${name}: ${left.join(', ')} is not taken over`);
  if (attributeOf(childNamed(element, 'link'), 'state') === 'down') {
    findings.note(`interface ${name}: the cable is out; it is in here`);
  }
  const mac = attributeOf(childNamed(element, 'mac'), 'address')?.toLowerCase().replaceAll('-', ':');
  const said = (attributeOf(childNamed(element, 'model'), 'type') ?? 'rtl8139').replace(
    /^virtio-(?:net-pci|(?:non-)?transitional)$/,
    'virtio',
  );
  const model = INTERFACE_MODELS.find((known) => known === said);
  const isKept = model !== undefined && isPossibleModel(model, chipset);
  const taken = isKept ? model : plainModel(chipset);
  if (!isKept)
    findings.note(`interface ${name}: the model ${quoted(said)} is not there for this machine; it becomes ${taken}`);
  const network = networkOf(element);
  return {
    nic: {
      id: `nic-${name}`,
      name,
      model: taken,
      ...(mac !== undefined && { mac }),
      ...(network !== undefined && { network }),
      plugged: true,
    },
    element,
    model: said,
    keepsAddress: isKept,
  };
}

function networkOf(element: XmlElement): string | undefined {
  if (attributeOf(element, 'type') === 'user') return 'pod';
  const [source] = childrenNamed(element, 'source');
  return attributeOf(source, 'bridge') ?? attributeOf(source, 'network') ?? attributeOf(source, 'dev');
}
