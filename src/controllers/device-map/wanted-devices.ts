/** What the template of a VM asks for of what it may ask for, by the ids that the devices have in a guest. Pure. */
import { interfacesOf } from '#api/attached-interfaces.ts';
import { allowsVideo, fixedDevices, isFixtureId, VIDEO_ID } from '#api/fixtures.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { templateSpec } from '#controllers/vm/vm-world.ts';

export interface Wish {
  /** False: attached, but not to be in the guest. */
  readonly plugged: boolean;
}

export type Wishes = ReadonlyMap<string, Wish>;

/** Types of devices that come and go with the template; all others come with the machine, or were found. */
const ASKED_TYPES: ReadonlySet<string> = new Set(['disk', 'interface', 'rng', 'balloon']);

export function isAskedFor({ id, type }: { readonly id: string; readonly type: string }): boolean {
  return ASKED_TYPES.has(type) || isFixtureId(id);
}

export function wishesOf(vm: Pick<VirtualMachine, 'spec'>): Wishes {
  const spec = templateSpec(vm);
  const { disks = [], rng, autoattachMemBalloon } = spec.domain.devices ?? {};
  const wishes = new Map<string, Wish>();
  for (const { name, plugged } of disks) wishes.set(`disk-${name}`, { plugged: plugged !== false });
  for (const { name, state } of interfacesOf(spec)) wishes.set(`nic-${name}`, { plugged: state !== 'absent' });
  if (rng !== undefined) wishes.set('rng0', { plugged: true });
  if (autoattachMemBalloon !== false) wishes.set('balloon0', { plugged: true });
  for (const { id } of fixedDevices(spec.domain.devices ?? {})) wishes.set(id, { plugged: true });
  if (allowsVideo(spec.domain.devices ?? {})) wishes.set(VIDEO_ID, { plugged: true });
  return wishes;
}
