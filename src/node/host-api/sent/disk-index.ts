/**
 * Assigns the index of a disk: its number among the disks of the same kind of bus, as in `vda`, `hdc` and `fda`. A disk
 * without an index gets the lowest free one. Disks without addresses are placed in the order of their indexes. Pure.
 */

export interface IndexedDisk {
  readonly iface: string;
  readonly media: string;
  readonly index?: number | undefined;
  /** The path in the request, for messages: `devices[2]`. */
  readonly field: string;
}

/** sata and scsi disks share the prefix sd, and therefore their indexes. */
const NAME_PREFIXES: Readonly<Record<string, string>> = { virtio: 'vd', ide: 'hd', fdc: 'fd', sata: 'sd', scsi: 'sd' };

/** Limits of the chipset. */
const MAX_DISKS: Readonly<Record<string, number>> = { ide: 4, fdc: 2 };

/** hdc, the traditional place of a CD-ROM drive. */
export const CDROM_INDEX = 2;

export function lowestFreeIndex(used: ReadonlySet<number>): number {
  let index = 0;
  while (used.has(index)) index++;
  return index;
}

/** Returns one index for each disk and appends to `errors`. `existing` are the disks that the guest already has. */
export function assignDiskIndexes(
  disks: readonly IndexedDisk[],
  errors: string[],
  existing: readonly IndexedDisk[] = [],
): readonly number[] {
  const usedByPrefix = new Map<string, Set<number>>();
  const usedIndexes = ({ iface }: IndexedDisk): Set<number> => {
    const prefix = NAME_PREFIXES[iface] ?? iface;
    const found = usedByPrefix.get(prefix) ?? new Set<number>();
    usedByPrefix.set(prefix, found);
    return found;
  };
  for (const disk of existing) if (disk.index !== undefined) usedIndexes(disk).add(disk.index);

  const assigned = new Map<IndexedDisk, number>();
  const assign = (disk: IndexedDisk, index: number) => {
    const { iface, field } = disk;
    const max = MAX_DISKS[iface] ?? Infinity;
    if (usedIndexes(disk).has(index))
      errors.push(`${field}.index: ${index} is already used by another disk on ${iface}`);
    if (index >= max) errors.push(`${field}.index: ${index} is too high; ${iface} has ${max} disks, starting at 0`);
    usedIndexes(disk).add(index);
    assigned.set(disk, index);
  };
  for (const disk of disks) if (disk.index !== undefined) assign(disk, disk.index);
  const unindexed = disks.filter(({ index }) => index === undefined);
  for (const disk of unindexed) {
    if (isIdeCdrom(disk) && !usedIndexes(disk).has(CDROM_INDEX)) assign(disk, CDROM_INDEX);
  }
  for (const disk of unindexed) if (!assigned.has(disk)) assign(disk, lowestFreeIndex(usedIndexes(disk)));
  return disks.map((disk) => assigned.get(disk) ?? 0);
}

function isIdeCdrom({ iface, media }: IndexedDisk): boolean {
  return iface === 'ide' && media === 'cdrom';
}
