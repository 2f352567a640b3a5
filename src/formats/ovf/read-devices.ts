/** Converts the Items of an OVF to disks, interfaces and rows, with buses and boot orders. */
import type { Chipset } from '#api/devices/chipset.ts';
import { INTERFACE_MODELS } from '#api/domain/interface.ts';
import {
  impliedBootOrders,
  assignBootOrders,
  parseSequence,
  sequenceByNumber,
  type BootCandidate,
} from '#formats/boot-sequence.ts';
import { UniqueNames } from '#formats/device-names.ts';
import { DeviceRows, isSpecialManaged } from '#formats/device-rows.ts';
import type { Findings } from '#formats/findings.ts';
import type { DescribedDisk, DescribedNic, MachineDescription } from '#formats/machine.ts';
import { sortForFirstRun } from '#formats/first-run-order.ts';
import { isSupportedModel, fallbackModel } from '#formats/supported-hardware.ts';
import type { Envelope } from '#formats/ovf/envelope.ts';
import { readDisks, type ReadDisk } from '#formats/ovf/read-disks.ts';
import type { OvfItem } from '#formats/ovf/read-item.ts';
import type { OvfStorage } from '#formats/ovf/read-storage.ts';
import { OWN, RESOURCE, TYPE_OF_RESOURCE, modelOfSubType } from '#formats/ovf/vocabulary.ts';
import { attributeOf } from '#lib/xml/xml.ts';
import { quoteText } from '#lib/text/quote-text.ts';

type Devices = Pick<MachineDescription, 'disks' | 'nics' | 'rows' | 'bootOrderIsImplied'>;

interface ReadNic {
  readonly nic: DescribedNic;
  readonly item: OvfItem;
}

const DISK_RESOURCES = new Set<number>([RESOURCE.disk, RESOURCE.cdrom, RESOURCE.dvd, RESOURCE.floppy]);
/** Controllers in OVFs of other products, where only their kind is known. */
const PLAIN_CONTROLLERS = new Set<number>([RESOURCE.ide, RESOURCE.scsi, RESOURCE.monitor]);

export function readOvfDevices(
  envelope: Envelope,
  items: readonly OvfItem[],
  storage: OvfStorage,
  chipset: Chipset | undefined,
  findings: Findings,
): Devices {
  const disks = readDisks(envelope, items.filter(isDisk), items, storage, chipset, findings);
  const nics = readNics(items, chipset, findings);
  const orders = readBootOrders(envelope, disks, nics, findings);
  const rows = new DeviceRows();
  for (const { disk, item, keepsAddress } of disks) {
    rows.add({
      id: disk.id,
      type: 'disk',
      device: disk.media,
      name: disk.name,
      ...(keepsAddress && { address: item?.address }),
      bootOrder: orders.get(disk.id),
      managed: true,
      plugged: disk.plugged,
      readonly: disk.readonly,
      specParams: item?.specParams,
    });
  }
  for (const { nic, item } of nics) {
    const keepsModel =
      nic.model === (item.own.get('model') ?? modelOfSubType(item.texts.get('ResourceSubType') ?? '3'));
    rows.add({
      id: nic.id,
      type: 'interface',
      device: nic.model,
      name: nic.name,
      ...(keepsModel && { address: item.address }),
      bootOrder: orders.get(nic.id),
      managed: true,
      plugged: nic.plugged,
      readonly: item.readonly,
      specParams: item.specParams,
    });
  }
  for (const item of items) addOtherDevice(item, envelope, rows, findings);
  const devices = sortForFirstRun({
    disks: disks.map(({ disk }): DescribedDisk => ({ ...disk, ...orderField(orders, disk.id) })),
    nics: nics.map(({ nic }) => ({ ...nic, ...orderField(orders, nic.id) })),
    rows: rows.rows,
  });
  return { ...devices, ...(isBootOrderImplied(envelope, devices.disks, orders) && { bootOrderIsImplied: true }) };
}

/**
 * Reports whether our own file says that its boot orders are implied, and they still are: a user may have edited them.
 */
function isBootOrderImplied(
  { system }: Envelope,
  disks: readonly DescribedDisk[],
  orders: ReadonlyMap<string, number>,
): boolean {
  if (attributeOf(system, 'boot-order', OWN) !== 'implied') return false;
  const implied = impliedBootOrders(disks);
  return implied.size === orders.size && [...implied].every(([id, number]) => orders.get(id) === number);
}

function isDisk({ resourceType, texts }: OvfItem): boolean {
  return DISK_RESOURCES.has(resourceType) || (resourceType === RESOURCE.other && texts.get('Type') === 'disk');
}

function orderField(orders: ReadonlyMap<string, number>, id: string): { bootOrder?: number } {
  const bootOrder = orders.get(id);
  return bootOrder === undefined ? {} : { bootOrder };
}

function readNics(items: readonly OvfItem[], chipset: Chipset | undefined, findings: Findings): ReadNic[] {
  const names = new UniqueNames();
  return items
    .filter(({ resourceType }) => resourceType === RESOURCE.network)
    .map((item) => {
      const { texts, own } = item;
      const name = own.get('name') ?? names.take(texts.get('Name') ?? texts.get('ElementName') ?? '', 'nic');
      const mac = texts.get('MACAddress')?.toLowerCase().replaceAll('-', ':');
      const network = own.get('network') ?? texts.get('Connection');
      const nic: DescribedNic = {
        id: `nic-${name}`,
        name,
        model: chooseModel(item, chipset, findings),
        ...(mac !== undefined && { mac }),
        ...(network !== undefined && { network }),
        plugged: item.plugged,
      };
      return { nic, item };
    });
}

function chooseModel({ texts, own, label }: OvfItem, chipset: Chipset | undefined, findings: Findings) {
  const exact = INTERFACE_MODELS.find((model) => model === own.get('model'));
  if (exact !== undefined) return exact;
  const sourceModel = texts.get('ResourceSubType') ?? '3';
  const model = modelOfSubType(sourceModel);
  if (model !== undefined && isSupportedModel(model, chipset)) return model;
  const replacement = fallbackModel(chipset);
  findings.addNote(
    `${quoteText(label)}: the model ${quoteText(sourceModel)} is not supported on this machine; it is replaced with ${replacement}`,
  );
  return replacement;
}

/**
 * Returns the boot orders of the devices; if there are none, those that follow from the boot sequence of the machine.
 */
function readBootOrders(
  { settings, product }: Envelope,
  disks: readonly ReadDisk[],
  nics: readonly ReadNic[],
  findings: Findings,
): ReadonlyMap<string, number> {
  const named = [
    ...disks.map(({ disk, item }) => ({ id: disk.id, item })),
    ...nics.map(({ nic, item }) => ({ id: nic.id, item })),
  ]
    .map(({ id, item }) => [id, item?.bootOrder ?? 0] as const)
    .filter(([, bootOrder]) => bootOrder > 0);
  if (named.length > 0 || product === 'Selfsame') return new Map(named);
  const text = settings.get('defaultbootsequence')?.text.trim() ?? '';
  const sequence = parseSequence(/^[0-9]{1,2}$/.test(text) ? (sequenceByNumber(Number(text)) ?? '-') : text || 'c');
  if (sequence === undefined) findings.addError(`${quoteText(text)} is not a valid boot sequence`);
  const byName = [...nics].sort((a, b) => (a.nic.name < b.nic.name ? -1 : 1));
  const candidates: BootCandidate[] = [
    ...disks.map(({ disk, isBootDisk }) => ({
      id: disk.id,
      kind: disk.media,
      plugged: disk.plugged,
      boot: isBootDisk,
    })),
    ...byName.map(({ nic }) => ({ id: nic.id, kind: 'nic' as const, plugged: nic.plugged })),
  ];
  return assignBootOrders(sequence ?? [], candidates);
}

function addOtherDevice(item: OvfItem, { product }: Envelope, rows: DeviceRows, findings: Findings): void {
  const { resourceType, own, label } = item;
  if (isDisk(item) || resourceType === RESOURCE.network || resourceType === RESOURCE.cpu) return;
  if (resourceType === RESOURCE.memory || resourceType === -1) return;
  if (product === undefined) {
    if (!PLAIN_CONTROLLERS.has(resourceType)) {
      findings.addNote(`the device ${quoteText(label)} (ResourceType ${resourceType}) is not imported`);
    }
    return;
  }
  const [type, device] = typeAndDevice(item);
  if (type === undefined || device === undefined) {
    findings.addNote(
      `the device ${quoteText(label)} (ResourceType ${resourceType}) has no type or device; it is not imported`,
    );
    return;
  }
  // An OVF of 3.0 names devices that every machine had; without an address there is nothing to keep.
  if (!item.hasDevice && type !== 'video') return;
  const isManaged = resourceType !== RESOURCE.other || isSpecialManaged(type, device);
  const managed = product === 'Selfsame' ? readOwnFlag(own.get('managed')) : isManaged;
  rows.addForeign({
    id: own.get('id'),
    type: own.get('type') ?? type,
    device: own.get('device') ?? device,
    name: own.get('name'),
    address: item.address,
    bootOrder: item.bootOrder,
    managed,
    plugged: item.plugged,
    readonly: item.readonly,
    specParams: item.specParams,
  });
}

function readOwnFlag(text: string | undefined): boolean | undefined {
  return text === undefined ? undefined : text === 'true';
}

function typeAndDevice({ resourceType, texts }: OvfItem): readonly [type?: string, device?: string] {
  const [type, device] = TYPE_OF_RESOURCE[resourceType] ?? [];
  const fallback = type === 'video' && Number(texts.get('VirtualQuantity') ?? 1) > 1 ? 'qxl' : device;
  return [texts.get('Type') ?? type, texts.get('Device') ?? fallback];
}
