/**
 * The index of a disk: its number among those on the same sort of bus, as `vda`, `hdc` and `fda` count them. What has none
 * gets the lowest free one; disks without addresses are placed in this order. Pure.
 */

export interface IndexedDisk {
  readonly iface: string;
  readonly media: string;
  readonly index?: number | undefined;
  /** For messages: `devices[2]`. */
  readonly field: string;
}

/** sata and scsi disks are all called sd. */
const LETTERS: Readonly<Record<string, string>> = { virtio: 'vd', ide: 'hd', fdc: 'fd', sata: 'sd', scsi: 'sd' };

/** What the chipset has of them. */
const MOST: Readonly<Record<string, number>> = { ide: 4, fdc: 2 };

/** hdc: where CD-ROM drives always were. */
export const CDROM_INDEX = 2;

export function nextIndex(taken: ReadonlySet<number>): number {
  let index = 0;
  while (taken.has(index)) index++;
  return index;
}

/** One index for each disk. `before` are those that are there already. */
export function giveIndexes(
  disks: readonly IndexedDisk[],
  faults: string[],
  before: readonly IndexedDisk[] = [],
): readonly number[] {
  const taken = new Map<string, Set<number>>();
  const takenBy = ({ iface }: IndexedDisk): Set<number> => {
    const letters = LETTERS[iface] ?? iface;
    const found = taken.get(letters) ?? new Set<number>();
    taken.set(letters, found);
    return found;
  };
  for (const disk of before) if (disk.index !== undefined) takenBy(disk).add(disk.index);

  const given = new Map<IndexedDisk, number>();
  const give = (disk: IndexedDisk, index: number) => {
    const { iface, field } = disk;
    const most = MOST[iface] ?? Infinity;
    if (takenBy(disk).has(index)) faults.push(`${field}.index: ${index} is that of another disk on ${iface}, too`);
    if (index >= most) faults.push(`${field}.index: ${index} is too much; ${iface} has ${most}, from 0 on`);
    takenBy(disk).add(index);
    given.set(disk, index);
  };
  for (const disk of disks) if (disk.index !== undefined) give(disk, disk.index);
  const open = disks.filter(({ index }) => index === undefined);
  for (const disk of open) {
    if (isIdeCdrom(disk) && !takenBy(disk).has(CDROM_INDEX)) give(disk, CDROM_INDEX);
  }
  for (const disk of open) if (!given.has(disk)) give(disk, nextIndex(takenBy(disk)));
  return disks.map((disk) => given.get(disk) ?? 0);
}

function isIdeCdrom({ iface, media }: IndexedDisk): boolean {
  return iface === 'ide' && media === 'cdrom';
}
