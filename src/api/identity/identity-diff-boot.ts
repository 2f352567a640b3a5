/** Compares the boot order of the next start with that of the last start. Pure. */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import type { LastSeen, Difference } from '#api/identity/identity-last-seen.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

interface Bootable {
  readonly id: string;
  readonly bootOrder?: number | undefined;
  /** True if the firmware boots from the device when no device has a boot order. */
  readonly isDefault: boolean;
}

export function bootDifference(next: VmiSpec, { devices }: LastSeen): Difference[] {
  if (devices === undefined) return [];
  const present = listBootable(next);
  const isNamed = present.some(({ bootOrder }) => bootOrder !== undefined);
  const after = isNamed ? sortByBootOrder(present) : present.filter(({ isDefault }) => isDefault).map(({ id }) => id);
  const last = [...devices.values()].filter(({ plugged }) => plugged !== false);
  const before = sortByBootOrder(last);
  // If the last start had no boot order, there is nothing to compare.
  if (before.length === 0) return [];
  const ids = new Set(present.map(({ id }) => id));
  const common = new Set(last.map(({ id }) => id).filter((id) => ids.has(id)));
  // Without explicit order, hotplugged devices come after all others; that is not a difference.
  const counts = (id: string) => common.has(id) && (isNamed || before.includes(id));
  const isSame = listText(before.filter(counts)) === listText(after.filter(counts));
  const isSameFirst = before[0] === after[0] || !common.has(before[0] ?? '');
  if (isSame && isSameFirst) return [];
  const why = isNamed ? 'the template sets this order' : 'disks boot in the order of the template';
  return [{ what: 'boot order', from: listText(before), to: listText(after), why }];
}

function listBootable(spec: VmiSpec): Bootable[] {
  const { disks = [] } = spec.domain.devices ?? {};
  return [
    ...disks
      .filter(({ plugged }) => plugged !== false)
      .map(({ name, bootOrder, floppy }) => ({ id: `disk-${name}`, bootOrder, isDefault: floppy === undefined })),
    ...interfacesOf(spec)
      .filter(({ state }) => state !== 'absent')
      .map(({ name, bootOrder }) => ({ id: `nic-${name}`, bootOrder, isDefault: false })),
  ];
}

function sortByBootOrder(
  devices: readonly { readonly id: string; readonly bootOrder?: number | undefined }[],
): string[] {
  return devices
    .filter(({ bootOrder }) => bootOrder !== undefined && bootOrder > 0)
    .toSorted((a, b) => (a.bootOrder ?? 0) - (b.bootOrder ?? 0))
    .map(({ id }) => id);
}

const listText = (ids: readonly string[]) => (ids.length === 0 ? 'none' : ids.join(', '));
