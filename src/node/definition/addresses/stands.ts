/**
 * On what a device stands, on PCI or as a unit of a controller, and what the record says of its place there. The rows
 * come from rowsFor (known-devices.ts).
 */
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/learned-device.ts';
import { INTERFACE_MODELS, isConventional } from '#api/domain/interface.ts';
import { unreachable } from '#lib/invariant.ts';
import type { DriveBus, Fixture, Layout } from '#node/definition/addresses/layout.ts';
import type { Placeable } from '#node/definition/addresses/unplaced.ts';
import { fixtureOf } from '#node/definition/devices/others.ts';
import type { DiskDevice, InterfaceDevice } from '#node/definition/domain-definition.ts';

export type Stand = 'pci' | DriveBus;

export function standOf(device: Placeable): Stand {
  if (device.type === 'disk') return device.bus === 'virtio' ? 'pci' : device.bus;
  return device.type === 'redirection' || (device.type === 'input' && device.bus === 'usb') ? 'usb' : 'pci';
}

/** Places that it may get where nothing is said, the best first; none where the layout has no such stand. */
export function choicesFor(device: Placeable, layout: Layout): readonly number[] {
  const { pci, drives } = layout;
  const stand = standOf(device);
  if (stand !== 'pci') return drives[stand]?.placesFor(device.type === 'disk' ? device.media : undefined) ?? [];
  if (device.type === 'disk') return pci.offered;
  if (device.type === 'interface') return isOnRootBus(device, layout) ? pci.placesFor('spare') : pci.offered;
  return pci.placesFor(fixtureFor(device));
}

/** Conventional PCI devices have no place behind the ports of PCI Express. */
export function isOnRootBus({ model }: Pick<InterfaceDevice, 'model'>, { hasPorts }: Layout): boolean {
  return hasPorts && isConventional(model);
}

function fixtureFor(device: Exclude<Placeable, DiskDevice | InterfaceDevice>): Fixture {
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
 * Places on one stand that the record names, by the id of the device. `wanted` are the devices of the guest: a row that
 * is of none of them is of a device that is gone. What cannot be given back is not in here (isStray), nor is the place of
 * a device that comes back after another one of the guest has got it.
 */
export function recordedPlaces(
  rows: readonly LearnedDevice[],
  stand: Stand,
  wanted: ReadonlyMap<string, Placeable>,
  layout: Layout,
): ReadonlyMap<string, number> {
  const recorded = new Map<string, number>();
  const held = new Set<number>();
  // Those that were in the guest first: who was not has no right to a place of theirs.
  const isAway = ({ plugged }: LearnedDevice) => plugged === false;
  for (const row of [...rows.filter((each) => !isAway(each)), ...rows.filter(isAway)]) {
    // Ports stand where the layout has them, wherever another manager had put its own.
    if (isRootPort(row)) continue;
    const device = wanted.get(row.id);
    const place = device === undefined ? placeOnStand(row, stand, layout) : placeFor(device, row, layout);
    if (place === undefined || (device !== undefined && standOf(device) !== stand)) continue;
    if (device !== undefined && isAway(row) && held.has(place)) continue;
    recorded.set(row.id, place);
    if (device !== undefined) held.add(place);
  }
  return recorded;
}

/** Where the row has it, as a place that the device may have. */
export function placeFor(device: Placeable, row: LearnedDevice, layout: Layout): number | undefined {
  const place = placeOnStand(row, standOf(device), layout);
  return place === undefined || mayStand(device, place, layout) ? place : undefined;
}

/**
 * Whether the record has the device where this layout has no place for it: to move it would be worse than to refuse. Not
 * so for our own fixtures, which have a place to go to, nor for a disk whose bus is another one now, nor for an interface
 * whose new model cannot stand where the old one did.
 */
export function isStray(device: Placeable, row: LearnedDevice, layout: Layout): boolean {
  if (row.address === undefined || placeFor(device, row, layout) !== undefined) return false;
  if (device.type === 'interface') return isOnRootBus(device, layout) === isOnRootBus(modelOf(row), layout);
  if (device.type === 'other') return true;
  if (device.type !== 'disk') return false;
  const kind = row.address['type'];
  const stand = standOf(device);
  if (stand === 'pci') return kind !== 'drive' && kind !== 'usb';
  const bus = busOf(row);
  return bus === undefined ? kind !== 'pci' && !isUnit(row.address, layout) : bus === stand;
}

/** Of any controller of the layout. */
function isUnit(address: DeviceAddress, { drives }: Layout): boolean {
  return Object.values(drives).some((places) => places.placeOf(address) !== undefined);
}

function mayStand(device: Placeable, place: number, layout: Layout): boolean {
  if (standOf(device) !== 'pci') return true;
  if (device.type === 'interface' && isOnRootBus(device, layout)) return !layout.pci.isPluggable(place);
  return (device.type !== 'disk' && device.type !== 'interface') || layout.pci.isPluggable(place);
}

/** A drive address does not say on which controller; where the row does not say so either, it may be any. */
function placeOnStand(row: LearnedDevice, stand: Stand, { pci, drives }: Layout): number | undefined {
  if (row.address === undefined) return undefined;
  if (stand === 'pci') return pci.placeOf(row.address);
  const bus = busOf(row);
  return bus === undefined || bus === stand ? drives[stand]?.placeOf(row.address) : undefined;
}

function modelOf({ device }: LearnedDevice): Pick<InterfaceDevice, 'model'> {
  return { model: INTERFACE_MODELS.find((model) => model === device) ?? 'virtio' };
}

function busOf({ device, specParams }: LearnedDevice): string | undefined {
  if (device === 'floppy') return 'fdc';
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : undefined;
}
