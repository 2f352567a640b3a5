/**
 * Tracks freed places: addresses that devices of the VM had and lost. A guest would take a new device there for the old
 * one, so other devices do not get them while others are free. A device that returns gets its place back. Pure.
 */
import { chipsetOf } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { type IdentityStatus, MAX_FREED } from '#api/virtual-machine-identity/kind.ts';

type Rows = Pick<IdentityStatus, 'machine' | 'devices' | 'freed'>;

/** Returns the freed places, newest last; the oldest are dropped first. A change of chipset voids all of them. */
export function freedPlacesAfter(known: Rows, next: Rows): LearnedDevice[] {
  const [from, to] = [chipsetOf(known.machine?.type), chipsetOf(next.machine?.type)];
  if (from !== undefined && to !== undefined && from !== to) return [];
  const placed = new Set(next.devices?.filter(hasPlace).map(({ id }) => id));
  const released = (known.devices ?? []).filter(
    (row) => isHotpluggableType(row) && hasPlace(row) && !placed.has(row.id),
  );
  const before = new Set(released.map(({ id }) => id));
  const remaining = (known.freed ?? []).filter(({ id }) => !placed.has(id) && !before.has(id));
  return [...remaining, ...released.map(toFreedPlace)].slice(-MAX_FREED);
}

function isHotpluggableType({ type }: LearnedDevice): boolean {
  return type === 'disk' || type === 'interface';
}

function hasPlace({ address = {} }: LearnedDevice): boolean {
  return Object.keys(address).length > 0;
}

/** Returns the row without its boot order and plugged state. The rest says to which controller the address belongs. */
function toFreedPlace({ bootOrder: _order, plugged: _plugged, ...row }: LearnedDevice): LearnedDevice {
  return row;
}
