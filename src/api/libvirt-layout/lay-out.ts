/**
 * Computes the addresses that libvirt assigned to the devices of an imported machine, by class and not in the order of
 * the definition (ADR 19). Known addresses are kept. test/libvirt compares the result with libvirt itself. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { diskBusOf, targetIndexes, unitAddress } from '#api/libvirt-layout/drive-units.ts';
import { listImpliedDevices, isPortUser, type ImpliedDevice } from '#api/libvirt-layout/implied-devices.ts';
import { placeOnPci, type PciPlacement } from '#api/libvirt-layout/place-on-pci.ts';
import { pciAddressToMap, formatPciAddress, type PciAddress } from '#api/devices/pci-address.ts';

export interface LayoutOptions {
  readonly chipset: Chipset;
  /** Target index by disk id, 1 for vdb. Other disks are numbered in the order of their rows. */
  readonly targets?: ReadonlyMap<string, number>;
  /** Devices that libvirt adds to a domain that does not mention them. */
  readonly defaults?: { readonly balloon: boolean; readonly usb: boolean };
  /**
   * True if the manager gave every machine an agent channel that the rows do not list: the slot of its controller is
   * then left free, unless a row has it.
   */
  readonly hasAgentChannel?: boolean;
}

export interface LibvirtLayout {
  /** The rows in their order, with addresses, then the devices that libvirt added. */
  readonly rows: readonly LearnedDevice[];
  /** Messages about devices that cannot have the address that libvirt assigned. */
  readonly notes: readonly string[];
}

/** Computes the layout. Devices that are not plugged get no address: libvirt did not know them. */
export function layOutAsLibvirt(rows: readonly LearnedDevice[], options: LayoutOptions): LibvirtLayout {
  const { chipset } = options;
  const present = rows.map(withoutEmptyAddress).filter(({ plugged }) => plugged !== false);
  const indexes = targetIndexes(
    present.filter(({ type }) => type === 'disk'),
    options.targets,
  );
  const drives = drivePlaces(present, indexes);
  const implied = listImpliedDevices(present, drives, options);
  const pci = placeOnPci(
    [...present.map((row) => ({ row, index: indexes.get(row.id) })), ...implied.map(toPciItem)],
    chipset,
  );
  const ports = assignChannelPorts(present);
  const notes: string[] = [];
  const placed = (row: LearnedDevice): LearnedDevice => {
    if (row.plugged === false || hasAddress(row)) return row;
    const address =
      pciPlace(row.id, pci, chipset, notes) ?? drivePlace(row.id, drives, notes) ?? ports.get(row.id) ?? undefined;
    return address === undefined ? row : { ...row, address };
  };
  const ids = new Set(rows.map(({ id }) => id));
  const added = implied
    .filter(({ row, isKept }) => isKept && !ids.has(row.id))
    .map(({ row }) => placed(row))
    .filter(hasAddress);
  return { rows: [...rows.map(placed), ...added], notes };
}

function toPciItem({ row, isConventional }: ImpliedDevice) {
  return { row, slot: isConventional === true ? ('pci' as const) : undefined, isImplied: true };
}

function hasAddress({ address }: LearnedDevice): boolean {
  return address !== undefined && Object.keys(address).length > 0;
}

function withoutEmptyAddress(row: LearnedDevice): LearnedDevice {
  const { address: _empty, ...rest } = row;
  return hasAddress(row) ? row : rest;
}

/** Returns the addresses of all disks on controllers, known or assigned. */
function drivePlaces(
  rows: readonly LearnedDevice[],
  indexes: ReadonlyMap<string, number>,
): ReadonlyMap<string, DeviceAddress> {
  const places = new Map<string, DeviceAddress>();
  for (const row of rows) {
    if (row.type !== 'disk') continue;
    const place = row.address ?? unitAddress(diskBusOf(row), indexes.get(row.id) ?? 0);
    if (place?.['type'] === 'drive') places.set(row.id, place);
  }
  return places;
}

function drivePlace(
  id: string,
  drives: ReadonlyMap<string, DeviceAddress>,
  notes: string[],
): DeviceAddress | undefined {
  const place = drives.get(id);
  if (place === undefined || place['controller'] === '0') return place;
  notes.push(
    `${id}: libvirt has it on controller ${place['controller']}, but this machine has only one; it gets another unit`,
  );
  return undefined;
}

const FIRST_PORT_OF_CHANNELS = 1;

/** Assigns ports of the virtio-serial controller. Consoles count from 0 and get no address; channels count from 1. */
function assignChannelPorts(rows: readonly LearnedDevice[]): ReadonlyMap<string, DeviceAddress> {
  const users = rows.filter(isPortUser);
  const taken = new Set(users.map(({ address }) => Number(address?.['port'] ?? -1)));
  const next = (from: number): number => {
    let port = from;
    while (taken.has(port)) port++;
    taken.add(port);
    return port;
  };
  const open = users.filter((row) => !hasAddress(row));
  for (const { type } of open) if (type === 'console') next(0);
  return new Map(
    open
      .filter(({ type }) => type === 'channel')
      .map(({ id }) => [
        id,
        { type: 'virtio-serial', controller: '0', bus: '0', port: String(next(FIRST_PORT_OF_CHANNELS)) },
      ]),
  );
}

function pciPlace(
  id: string,
  { addresses, models }: PciPlacement,
  chipset: Chipset,
  notes: string[],
): DeviceAddress | undefined {
  const address = addresses.get(id);
  if (address === undefined) return undefined;
  if (isPossible(address, models, chipset)) return pciAddressToMap(address);
  const why = address.function === 0 ? 'behind a PCI bridge' : 'as one of several functions of a slot';
  notes.push(
    `${id}: libvirt has it at ${formatPciAddress(address)}, ${why}, which is not supported; it gets another address`,
  );
  return undefined;
}

/** Number of root ports of a guest (ADR 10). */
const MAX_PORTS = 32;

/** Reports whether our layouts (ADR 10, ADR 12) have the address. */
function isPossible({ bus, function: fn }: PciAddress, models: PciPlacement['models'], chipset: Chipset): boolean {
  if (fn !== 0) return false;
  if (bus === 0) return true;
  return chipset === 'q35' && bus <= MAX_PORTS && models[bus - 1] === 'root-port';
}
