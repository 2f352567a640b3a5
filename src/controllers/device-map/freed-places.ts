/**
 * Places that devices of the VM had and gave up. A guest takes whatever comes there for what was there before, so nobody
 * else gets them while others are free; the one that had it gets it back, should it return. Pure.
 */
import { chipsetOf } from '#api/chipset.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { type IdentityStatus, MAX_FREED } from '#api/virtual-machine-identity/kind.ts';

type Rows = Pick<IdentityStatus, 'machine' | 'devices' | 'freed'>;

/** The newest last; the oldest are forgotten first. Addresses of one chipset mean nothing on another. */
export function freedAfter(known: Rows, next: Rows): LearnedDevice[] {
  const [from, to] = [chipsetOf(known.machine?.type), chipsetOf(next.machine?.type)];
  if (from !== undefined && to !== undefined && from !== to) return [];
  const placed = new Set(next.devices?.filter(hasPlace).map(({ id }) => id));
  const given = (known.devices ?? []).filter((row) => comesAndGoes(row) && hasPlace(row) && !placed.has(row.id));
  const before = new Set(given.map(({ id }) => id));
  const still = (known.freed ?? []).filter(({ id }) => !placed.has(id) && !before.has(id));
  return [...still, ...given.map(placeOnly)].slice(-MAX_FREED);
}

function comesAndGoes({ type }: LearnedDevice): boolean {
  return type === 'disk' || type === 'interface';
}

function hasPlace({ address = {} }: LearnedDevice): boolean {
  return Object.keys(address).length > 0;
}

/** What it was says on which controller the address is; how it was booted from does not matter any more. */
function placeOnly({ bootOrder: _order, plugged: _plugged, ...row }: LearnedDevice): LearnedDevice {
  return row;
}
