/**
 * On what a device stands, on PCI or as a unit of a controller, and what the record says of its place there. The rows
 * come from rowsFor (known-devices.ts).
 */
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/learned-device.ts';
import { unreachable } from '#lib/invariant.ts';
import type { DriveBus, Fixture, Layout } from '#node/definition/addresses/layout.ts';
import type { Placeable } from '#node/definition/addresses/unplaced.ts';
import { fixtureOf } from '#node/definition/devices/others.ts';
import type { DiskDevice, InterfaceDevice } from '#node/definition/domain-definition.ts';

export type Stand = 'pci' | DriveBus;

export function standOf(device: Placeable): Stand {
  return device.type === 'disk' && device.bus !== 'virtio' ? device.bus : 'pci';
}

/** Places that it may get where nothing is said, the best first; none where the layout has no such stand. */
export function choicesFor(device: Placeable, { pci, drives }: Layout): readonly number[] {
  if (device.type === 'interface') return pci.offered;
  if (device.type !== 'disk') return pci.placesFor(fixtureFor(device));
  return device.bus === 'virtio' ? pci.offered : (drives[device.bus]?.placesFor(device.media) ?? []);
}

function fixtureFor(device: Exclude<Placeable, DiskDevice | InterfaceDevice>): Fixture {
  switch (device.type) {
    case 'scsi-controller':
      return 'scsi';
    case 'rng':
    case 'balloon':
    case 'video':
      return device.type;
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
  const isAllowed = place === undefined || !isPluggedIn(device) || layout.pci.isPluggable(place);
  return isAllowed ? place : undefined;
}

/**
 * Whether the record has the device where this layout has no place for it: to move it would be worse than to refuse. Not
 * so for our own fixtures, which have a place to go to, nor for a disk whose bus is another one now.
 */
export function isStray(device: Placeable, row: LearnedDevice, layout: Layout): boolean {
  if (row.address === undefined || placeFor(device, row, layout) !== undefined) return false;
  if (device.type === 'other' || device.type === 'interface') return true;
  if (device.type !== 'disk') return false;
  const kind = row.address['type'];
  const stand = standOf(device);
  if (stand === 'pci') return kind !== 'drive';
  const bus = busOf(row);
  return bus === undefined ? kind !== 'pci' && !isUnit(row.address, layout) : bus === stand;
}

/** Of any controller of the layout. */
function isUnit(address: DeviceAddress, { drives }: Layout): boolean {
  return Object.values(drives).some((places) => places.placeOf(address) !== undefined);
}

function isPluggedIn(device: Placeable): boolean {
  return standOf(device) === 'pci' && (device.type === 'disk' || device.type === 'interface');
}

/** A drive address does not say on which controller; where the row does not say so either, it may be any. */
function placeOnStand(row: LearnedDevice, stand: Stand, { pci, drives }: Layout): number | undefined {
  if (row.address === undefined) return undefined;
  if (stand === 'pci') return pci.placeOf(row.address);
  const bus = busOf(row);
  return bus === undefined || bus === stand ? drives[stand]?.placeOf(row.address) : undefined;
}

function busOf({ device, specParams }: LearnedDevice): string | undefined {
  if (device === 'floppy') return 'fdc';
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : undefined;
}
