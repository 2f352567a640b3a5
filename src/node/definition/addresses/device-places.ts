/**
 * The bus of a device (PCI or that of a controller), its candidate places there, and its recorded place. The rows come
 * from rowsFor (known-devices.ts).
 */
import { byClaim, isGone, isUnplugged } from '#api/devices/known-devices.ts';
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/devices/learned-device.ts';
import { INTERFACE_MODELS, isConventional } from '#api/domain/interface.ts';
import { unreachable } from '#lib/invariant.ts';
import type { DriveBus, Fixture, Layout } from '#node/definition/addresses/layout.ts';
import type { PlaceableDevice } from '#node/definition/addresses/unplaced-device.ts';
import { fixtureOf } from '#node/definition/devices/other-devices.ts';
import type { DiskDevice, InterfaceDevice } from '#node/hardware/domain-definition.ts';

type DeviceBus = 'pci' | DriveBus;

export function deviceBusOf(device: PlaceableDevice): DeviceBus {
  if (device.type === 'disk') return device.bus === 'virtio' ? 'pci' : device.bus;
  return device.type === 'redirection' || (device.type === 'input' && device.bus === 'usb') ? 'usb' : 'pci';
}

/** Returns the places that the device can get, the best first; none if the layout does not have its bus. */
export function candidatePlaces(device: PlaceableDevice, layout: Layout): readonly number[] {
  const { pci, drives } = layout;
  const bus = deviceBusOf(device);
  if (bus !== 'pci') return drives[bus]?.placesFor(device.type === 'disk' ? device.media : undefined) ?? [];
  if (device.type === 'disk') return pci.defaultPlaces;
  if (device.type === 'interface') return isOnRootBus(device, layout) ? pci.placesFor('spare') : pci.defaultPlaces;
  return pci.placesFor(fixtureOfDevice(device));
}

/**
 * Reports whether the interface must be on the root bus: conventional PCI devices cannot be behind PCI Express ports.
 */
export function isOnRootBus({ model }: Pick<InterfaceDevice, 'model'>, { hasPorts }: Layout): boolean {
  return hasPorts && isConventional(model);
}

function fixtureOfDevice(device: Exclude<PlaceableDevice, DiskDevice | InterfaceDevice>): Fixture {
  switch (device.type) {
    case 'scsi-controller':
      return 'scsi';
    case 'usb-controller':
      return 'usb';
    case 'rng':
    case 'balloon':
    case 'video':
    case 'sound':
    case 'watchdog':
      return device.type;
    case 'input':
    case 'redirection':
      return 'spare';
    case 'other':
      return fixtureOf(device.row) ?? 'usb';
    default:
      return unreachable(device);
  }
}

/**
 * Returns the recorded places on one bus by device id. `devicesById` are the devices of the guest; rows of other
 * devices are of devices that are unplugged or gone. Places that the layout does not have are omitted (isRecordUnusable),
 * and so is the place of a returning device that belongs to another device meanwhile, or that the spec names (`reserved`).
 */
export function recordedPlaces(
  rows: readonly LearnedDevice[],
  bus: DeviceBus,
  devicesById: ReadonlyMap<string, PlaceableDevice>,
  layout: Layout,
  reserved: ReadonlySet<number> = new Set(),
): ReadonlyMap<string, number> {
  const recorded = new Map<string, number>();
  const occupied = new Set<number>();
  for (const row of byClaim(rows)) {
    // The layout decides the addresses of root ports, whatever another manager recorded.
    if (isRootPort(row)) continue;
    const device = devicesById.get(row.id);
    const place = device === undefined ? placeOnBus(row, bus, layout) : recordedPlaceOf(device, row, layout);
    if (place === undefined || (device !== undefined && deviceBusOf(device) !== bus)) continue;
    const isTaken = occupied.has(place) || (isGone(row) && reserved.has(place));
    if (device !== undefined && isTaken && (row.plugged === false || isGone(row))) continue;
    recorded.set(row.id, place);
    if (device !== undefined || isUnplugged(row)) occupied.add(place);
  }
  return recorded;
}

/** Returns the place of the row, or undefined if the device cannot be there. */
export function recordedPlaceOf(device: PlaceableDevice, row: LearnedDevice, layout: Layout): number | undefined {
  const place = placeOnBus(row, deviceBusOf(device), layout);
  return place === undefined || canUsePlace(device, place, layout) ? place : undefined;
}

/**
 * Reports whether the device is recorded at an address that this layout does not have; the start is then refused,
 * because moving the device would be worse. False for our own fixtures, which have a place to fall back to, for a disk
 * whose bus has changed, and for an interface whose new model cannot be where the old one was.
 */
export function isRecordUnusable(device: PlaceableDevice, row: LearnedDevice, layout: Layout): boolean {
  if (row.address === undefined || recordedPlaceOf(device, row, layout) !== undefined) return false;
  if (device.type === 'interface') return isOnRootBus(device, layout) === isOnRootBus(recordedModel(row), layout);
  if (device.type === 'other') return true;
  if (device.type !== 'disk') return false;
  const kind = row.address['type'];
  const bus = deviceBusOf(device);
  if (bus === 'pci') return kind !== 'drive' && kind !== 'usb';
  const rowBus = recordedBus(row);
  return rowBus === undefined ? kind !== 'pci' && !isUnitOfLayout(row.address, layout) : rowBus === bus;
}

/** Reports whether the address is a unit of any controller of the layout. */
function isUnitOfLayout(address: DeviceAddress, { drives }: Layout): boolean {
  return Object.values(drives).some((places) => places.placeOf(address) !== undefined);
}

function canUsePlace(device: PlaceableDevice, place: number, layout: Layout): boolean {
  if (deviceBusOf(device) !== 'pci') return true;
  if (device.type === 'interface' && isOnRootBus(device, layout)) return !layout.pci.isPluggable(place);
  return (device.type !== 'disk' && device.type !== 'interface') || layout.pci.isPluggable(place);
}

/**
 * Returns the place of the row on the bus. A drive address does not name the controller; if the row has no bus either,
 * any bus matches.
 */
function placeOnBus(row: LearnedDevice, bus: DeviceBus, { pci, drives }: Layout): number | undefined {
  if (row.address === undefined) return undefined;
  if (bus === 'pci') return pci.placeOf(row.address);
  const rowBus = recordedBus(row);
  return rowBus === undefined || rowBus === bus ? drives[bus]?.placeOf(row.address) : undefined;
}

function recordedModel({ device }: LearnedDevice): Pick<InterfaceDevice, 'model'> {
  return { model: INTERFACE_MODELS.find((model) => model === device) ?? 'virtio' };
}

function recordedBus({ device, specParams }: LearnedDevice): string | undefined {
  if (device === 'floppy') return 'fdc';
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : undefined;
}
