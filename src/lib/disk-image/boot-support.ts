/** Determines which firmware finds a boot loader on a disk, from its boot sector, partitions and boot catalog. */
import { readExactly, type ByteSource } from '#lib/disk-image/byte-source.ts';
import { readIsoImage } from '#lib/disk-image/iso-image.ts';
import {
  hasBootCode,
  isFatSector,
  readPartitionTable,
  DISK_SECTOR,
  type PartitionTable,
} from '#lib/disk-image/partition-table.ts';

export interface BootSupport {
  /** True if BIOS finds code in the boot sector or in the boot catalog. */
  readonly bios: boolean;
  /** True if UEFI finds a file system that it can read: an EFI system partition, FAT, or an entry in the boot catalog. */
  readonly efi: boolean;
}

/** EFI system partitions, by the type of the partition in MBR and GPT. */
const EFI_SYSTEM: ReadonlySet<string> = new Set(['ef', '28732ac11ff8d211ba4b00a0c93ec93b']);
const MAX_PARTITIONS = 128;

/**
 * Returns undefined if the disk has neither partitions nor a boot catalog nor a FAT file system, or if it is not known
 * what it contains.
 */
export async function readBootSupport(disk: ByteSource): Promise<BootSupport | undefined> {
  const sector = await readExactly(disk, DISK_SECTOR, 0);
  if (sector === undefined) return undefined;
  const iso = await readIsoImage(disk);
  const bios = hasBootCode(sector) || iso?.bootsBios === true;
  if (iso?.bootsEfi === true || isFatSector(sector)) return { bios, efi: true };
  const table = await readPartitionTable(disk);
  if (table === undefined) return iso && { bios, efi: false };
  const efi = await hasEfiPartition(disk, table);
  return efi === undefined ? undefined : { bios, efi };
}

/** Returns undefined if it is not known. UEFI also boots from a FAT file system in a partition of another type. */
async function hasEfiPartition(disk: ByteSource, { partitions, hasExtended }: PartitionTable) {
  if (partitions.some(({ type }) => EFI_SYSTEM.has(type))) return true;
  if (partitions.length > MAX_PARTITIONS) return undefined;
  let isKnown = !hasExtended;
  for (const { at } of partitions) {
    const sector = await readExactly(disk, DISK_SECTOR, at);
    if (sector === undefined) isKnown = false;
    else if (isFatSector(sector)) return true;
  }
  return isKnown ? false : undefined;
}
