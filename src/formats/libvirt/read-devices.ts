/** Reads the devices of a domain: disks, interfaces, and everything else with an address. */
import type { Chipset } from '#api/devices/chipset.ts';
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import { assignBootOrders, type BootCandidate, type BootLetter } from '#formats/boot-sequence.ts';
import { UniqueNames } from '#formats/device-names.ts';
import { DeviceRows } from '#formats/device-rows.ts';
import type { Findings } from '#formats/findings.ts';
import { readElementAddress, readElementBootOrder, readOwnId } from '#formats/libvirt/element-parts.ts';
import { readOtherDevice } from '#formats/libvirt/read-other-devices.ts';
import { readDomainDisk, type DomainDisk } from '#formats/libvirt/read-disk.ts';
import { layOutDomain, type DomainNic } from '#formats/libvirt/lay-out-domain.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { NO_FLOPPY, isSupportedModel, fallbackModel } from '#formats/supported-hardware.ts';
import { attributeOf, childNamed, childrenNamed, type XmlElement } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows'>;

const MAX_DEVICES = 2048;
const NIC_PARTS = new Set(['mac', 'source', 'model', 'boot', 'alias', 'address', 'target', 'link', 'driver', 'guest']);

/** Reads all devices. `letters` are the boot devices of `os`; they count if no device has a boot order. */
export function readDomainDevices(
  devices: XmlElement | undefined,
  letters: readonly string[],
  chipset: Chipset | undefined,
  findings: Findings,
): Devices {
  const elements = devices?.children ?? [];
  if (elements.length > MAX_DEVICES)
    findings.addError(`there are ${elements.length} devices, more than ${MAX_DEVICES}`);
  const listed = elements.slice(0, MAX_DEVICES);
  const diskNames = new UniqueNames();
  const disks = listed
    .filter((element) => element.name === 'disk' && !isLeftOut(element, chipset, findings))
    .map((element) => readDomainDisk(element, diskNames, chipset, findings));
  const nicNames = new UniqueNames();
  const nics = listed
    .filter(({ name }) => name === 'interface')
    .map((element) => readNic(element, nicNames, chipset, findings));
  const orders = readBootOrders(disks, nics, letters);
  const rows = new DeviceRows();
  for (const { disk, element, keepsAddress } of disks) {
    const { id, name, media, readonly } = disk;
    const address = keepsAddress ? readElementAddress(element) : undefined;
    rows.add({ id, type: 'disk', device: media, name, address, bootOrder: orders.get(id), managed: true, readonly });
  }
  for (const { nic, element, keepsAddress } of nics) {
    const { id, name, model } = nic;
    const address = keepsAddress ? readElementAddress(element) : undefined;
    rows.add({ id, type: 'interface', device: model, name, address, bootOrder: orders.get(id), managed: true });
  }
  const hasSerial = listed.some(({ name }) => name === 'serial');
  for (const element of listed) {
    if (element.name === 'disk' || element.name === 'interface') continue;
    const device = readOtherDevice(element, hasSerial, findings);
    if (device !== undefined) rows.addForeign(device);
  }
  const read = {
    disks: disks.map(({ disk }) => ({ ...disk, ...orderField(orders, disk.id) })),
    nics: nics.map(({ nic }) => ({ ...nic, ...orderField(orders, nic.id) })),
    rows: rows.rows,
  };
  return layOutDomain(read, { elements: listed, disks, nics, chipset }, findings);
}

function isLeftOut(element: XmlElement, chipset: Chipset | undefined, findings: Findings): boolean {
  const isUnsupported = attributeOf(element, 'device') === 'floppy' && chipset !== 'i440fx';
  if (isUnsupported) findings.addNote(`a floppy drive is left out: ${NO_FLOPPY}`);
  return isUnsupported;
}

function orderField(orders: ReadonlyMap<string, number>, id: string): { bootOrder?: number } {
  const bootOrder = orders.get(id);
  return bootOrder === undefined ? {} : { bootOrder };
}

function readBootOrders(
  disks: readonly DomainDisk[],
  nics: readonly DomainNic[],
  letters: readonly string[],
): ReadonlyMap<string, number> {
  const named = [
    ...disks.map(({ disk, element }) => ({ id: disk.id, element })),
    ...nics.map(({ nic, element }) => ({ id: nic.id, element })),
  ].flatMap(({ id, element }) => {
    const bootOrder = readElementBootOrder(element);
    return bootOrder === undefined ? [] : [[id, bootOrder] as const];
  });
  if (named.length > 0) return new Map(named);
  const candidates: BootCandidate[] = [
    ...disks.map(({ disk }) => ({ id: disk.id, kind: disk.media, plugged: true })),
    ...nics.map(({ nic }) => ({ id: nic.id, kind: 'nic' as const, plugged: true })),
  ];
  return assignBootOrders([...new Set(letters)] as BootLetter[], candidates);
}

function readNic(element: XmlElement, names: UniqueNames, chipset: Chipset | undefined, findings: Findings): DomainNic {
  const name = names.take(readOwnId(element)?.replace(/^nic-/, '') ?? '', 'nic');
  const ignored = element.children.filter((child) => !NIC_PARTS.has(child.name)).map((child) => child.name);
  if (ignored.length > 0) findings.addNote(`interface ${name}: ${ignored.join(', ')} is not imported`);
  if (attributeOf(childNamed(element, 'link'), 'state') === 'down') {
    findings.addNote(`interface ${name}: the link is down in the file; it is up after the import`);
  }
  const mac = attributeOf(childNamed(element, 'mac'), 'address')?.toLowerCase().replaceAll('-', ':');
  const sourceModel = (attributeOf(childNamed(element, 'model'), 'type') ?? 'rtl8139').replace(
    /^virtio-(?:net-pci|(?:non-)?transitional)$/,
    'virtio',
  );
  const model = INTERFACE_MODELS.find((known) => known === sourceModel);
  const isKept = model !== undefined && isSupportedModel(model, chipset);
  const chosenModel = isKept ? model : fallbackModel(chipset);
  if (!isKept)
    findings.addNote(
      `interface ${name}: the model ${quoteText(sourceModel)} is not supported on this machine; it is replaced with ${chosenModel}`,
    );
  const network = readNetwork(element);
  return {
    nic: {
      id: `nic-${name}`,
      name,
      model: chosenModel,
      ...(mac !== undefined && { mac }),
      ...(network !== undefined && { network }),
      plugged: true,
    },
    element,
    model: sourceModel,
    keepsAddress: isKept,
  };
}

function readNetwork(element: XmlElement): string | undefined {
  if (attributeOf(element, 'type') === 'user') return 'pod';
  const [source] = childrenNamed(element, 'source');
  return attributeOf(source, 'bridge') ?? attributeOf(source, 'network') ?? attributeOf(source, 'dev');
}
