/**
 * Assigns PCI addresses to devices without one, as libvirt does: first those that the chipset fixes, then class by
 * class, each in the next free slot. Known addresses are kept. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import {
  controllerIndex,
  controllerType,
  specModelOf,
  pciHardwareOf,
  classRankOf,
  usb2FunctionOf,
  type PciHardware,
} from '#api/libvirt-layout/hardware.ts';
import { PciBuses, type BusModel, type Slot } from '#api/libvirt-layout/pci-buses.ts';
import { pciAddressFromMap, type PciAddress } from '#api/devices/pci-address.ts';

/** A row that takes part in the layout. */
interface PciItem {
  readonly row: LearnedDevice;
  /** The target index of a disk. */
  readonly index?: number | undefined;
  /** The kind of slot, if it does not follow from the row. */
  readonly slot?: Slot | undefined;
  /** True if libvirt adds the device by itself: it then comes after all others of its class. */
  readonly isImplied?: boolean;
}

export interface PciPlacement {
  /** Addresses of the devices that had none, by id. Devices that found no slot are missing. */
  readonly addresses: ReadonlyMap<string, PciAddress>;
  /** The buses other than the root bus. */
  readonly models: readonly BusModel[];
}

export function placeOnPci(items: readonly PciItem[], chipset: Chipset): PciPlacement {
  const rows = items.map(({ row }) => row);
  const known = rows.flatMap(({ address }) => (address && pciAddressFromMap(address)) ?? []);
  const open = sortForPlacement(items, chipset).filter(({ row }) => row.address === undefined);
  // The buses are known only after all devices have been placed once.
  const trial = new PciBuses(chipset, knownBuses(rows));
  place(open, known, trial, chipset);
  const models = trial.models.map((model) => (model === 'port-of-bridge' ? 'root-port' : model));
  const buses = new PciBuses(chipset, models);
  const hasNewBridge = models.includes('bridge') && !knownBuses(rows).includes('bridge');
  const addresses = place(open, known, buses, chipset, hasNewBridge);
  return { addresses, models: buses.models };
}

interface OpenDevice extends PciHardware {
  readonly row: LearnedDevice;
}

function place(
  devices: readonly OpenDevice[],
  known: readonly PciAddress[],
  buses: PciBuses,
  chipset: Chipset,
  placesBridge = false,
): ReadonlyMap<string, PciAddress> {
  const addresses = new Map<string, PciAddress>();
  for (const address of known) buses.take(address);
  for (const [id, address] of takeChipsetPlaces(devices, buses, chipset)) addresses.set(id, address);
  if (placesBridge) buses.takePortForBridge();
  for (const { row, slot } of devices) {
    if (addresses.has(row.id)) continue;
    const address = placeBesideUsb2(row, devices, addresses, buses) ?? buses.takeNext(slot, usb2FunctionOf(row));
    if (address !== undefined) addresses.set(row.id, address);
  }
  return addresses;
}

/** Returns the address next to the other functions of the same USB 2 controller. */
function placeBesideUsb2(
  row: LearnedDevice,
  devices: readonly OpenDevice[],
  addresses: ReadonlyMap<string, PciAddress>,
  buses: PciBuses,
): PciAddress | undefined {
  const fn = usb2FunctionOf(row);
  if (fn === undefined) return undefined;
  const sibling = devices.find(
    (other) =>
      usb2FunctionOf(other.row) !== undefined &&
      controllerIndex(other.row) === controllerIndex(row) &&
      addresses.has(other.row.id),
  );
  const place = sibling && addresses.get(sibling.row.id);
  if (place === undefined) return undefined;
  const address = { ...place, function: fn };
  buses.take(address);
  return address;
}

const at = (slot: number, fn = 0): PciAddress => ({ domain: 0, bus: 0, slot, function: fn });

/** Takes and returns the addresses that the chipset fixes. */
function takeChipsetPlaces(devices: readonly OpenDevice[], buses: PciBuses, chipset: Chipset): [string, PciAddress][] {
  const isQ35 = chipset === 'q35';
  for (const place of isQ35 ? [at(0x1f), at(0x1f, 2), at(0x1f, 3)] : [at(1), at(1, 1), at(1, 2), at(1, 3)]) {
    buses.take(place);
  }
  const found: [string, PciAddress][] = [];
  const assign = (row: LearnedDevice | undefined, ...places: readonly PciAddress[]) => {
    const place = places.find((candidate) => !buses.isTaken(candidate));
    if (row === undefined || place === undefined) return;
    buses.take(place);
    found.push([row.id, place]);
  };
  const first = (is: (row: LearnedDevice) => boolean) => devices.find(({ row }) => is(row))?.row;
  const uhci1 = devices.filter(({ row }) => usb2FunctionOf(row) === 0).map(({ row }) => row);
  if (isQ35) for (const row of uhci1) assign(row, at(0x1d), at(0x1a));
  assign(
    first(({ type }) => type === 'video'),
    at(isQ35 ? 1 : 2),
  );
  if (isQ35) {
    assign(
      first(({ type, device }) => type === 'sound' && device === 'ich9'),
      at(0x1b),
    );
  }
  return found;
}

/** Returns the devices that need an address of their own, in the order of assignment. */
function sortForPlacement(items: readonly PciItem[], chipset: Chipset): readonly OpenDevice[] {
  const controllers = items.filter(({ row }) => row.type === 'controller').map(({ row }) => controllerType(row));
  const types = [...new Set(controllers)];
  const orderOf = ({ row, index = 0, isImplied = false }: PciItem): readonly number[] => {
    if (isImplied) return [types.length];
    return row.type === 'controller' ? [types.indexOf(controllerType(row)), controllerIndex(row)] : [index];
  };
  return items
    .flatMap((item) => {
      const hardware = isChipsetDevice(item.row, chipset) ? undefined : pciHardwareOf(item.row, chipset);
      if (hardware === undefined) return [];
      const slot = item.slot ?? hardware.slot;
      return [{ ...hardware, slot, row: item.row, order: [classRankOf(hardware), ...orderOf(item)] }];
    })
    .toSorted((a, b) => compare(a.order, b.order));
}

function compare(a: readonly number[], b: readonly number[]): number {
  for (const [i, value] of a.entries()) {
    const difference = value - (b[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Reports whether the device is part of the chipset and has a fixed address. */
function isChipsetDevice(row: LearnedDevice, chipset: Chipset): boolean {
  if (row.type !== 'controller' || controllerIndex(row) !== 0) return false;
  if (row.device === 'sata') return chipset === 'q35';
  return row.device === 'usb' && chipset === 'i440fx' && [undefined, 'piix3-uhci'].includes(specModelOf(row));
}

/** Returns the buses that the rows contain, by index from 1. */
function knownBuses(rows: readonly LearnedDevice[]): readonly BusModel[] {
  const models: BusModel[] = [];
  for (const row of rows) {
    if (row.type !== 'controller' || controllerType(row) !== 'pci') continue;
    const index = controllerIndex(row) || portNumber(row);
    if (index > 0 && index < 256)
      models[index - 1] = specModelOf(row) === 'pcie-to-pci-bridge' ? 'bridge' : 'root-port';
  }
  return Array.from(models, (model) => model ?? 'root-port');
}

/** Returns the bus number of one of our root ports, rp0, rp1 ..., or 0. */
function portNumber({ id }: LearnedDevice): number {
  const number = /^rp(\d{1,2})$/.exec(id)?.[1];
  return number === undefined ? 0 : Number(number) + 1;
}
