/** In which order the firmware will look for something to boot, against the order of the last start. Pure. */
import { interfacesOf } from '#api/attached-interfaces.ts';
import type { Difference } from '#api/identity-diff.ts';
import type { LastSeen } from '#api/identity-last-seen.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

interface Bootable {
  readonly id: string;
  readonly bootOrder?: number | undefined;
  /** Booted from although nothing says so, where nothing says anything. */
  readonly byItself: boolean;
}

export function bootDifference(next: VmiSpec, { devices }: LastSeen): Difference[] {
  if (devices === undefined) return [];
  const there = bootables(next);
  const isNamed = there.some(({ bootOrder }) => bootOrder !== undefined);
  const after = isNamed ? inOrder(there) : there.filter(({ byItself }) => byItself).map(({ id }) => id);
  const then = [...devices.values()].filter(({ plugged }) => plugged !== false);
  const before = inOrder(then);
  // A guest that was never told of an order, or whose record has none, has nothing to miss.
  if (before.length === 0) return [];
  const ids = new Set(there.map(({ id }) => id));
  const stays = new Set(then.map(({ id }) => id).filter((id) => ids.has(id)));
  // What was plugged in while the guest ran stands behind all others, where nothing names an order: no news.
  const counts = (id: string) => stays.has(id) && (isNamed || before.includes(id));
  const isSame = listText(before.filter(counts)) === listText(after.filter(counts));
  const isSameFirst = before[0] === after[0] || !stays.has(before[0] ?? '');
  if (isSame && isSameFirst) return [];
  const why = isNamed ? 'the template names this order' : 'disks boot in the order in which the template has them';
  return [{ what: 'boot order', from: listText(before), to: listText(after), why }];
}

function bootables(spec: VmiSpec): Bootable[] {
  const { disks = [] } = spec.domain.devices ?? {};
  return [
    ...disks
      .filter(({ plugged }) => plugged !== false)
      .map(({ name, bootOrder, floppy }) => ({ id: `disk-${name}`, bootOrder, byItself: floppy === undefined })),
    ...interfacesOf(spec)
      .filter(({ state }) => state !== 'absent')
      .map(({ name, bootOrder }) => ({ id: `nic-${name}`, bootOrder, byItself: false })),
  ];
}

function inOrder(devices: readonly { readonly id: string; readonly bootOrder?: number | undefined }[]): string[] {
  return devices
    .filter(({ bootOrder }) => bootOrder !== undefined && bootOrder > 0)
    .toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))
    .map(({ id }) => id);
}

const listText = (ids: readonly string[]) => (ids.length === 0 ? 'none' : ids.join(', '));
