/** Finds disks that end earlier than their partition table or volume descriptor says, as after an interrupted download. */
import type { ByteSource } from '#lib/disk-image/byte-source.ts';
import { readIsoImage } from '#lib/disk-image/iso-image.ts';
import { readPartitionTable } from '#lib/disk-image/partition-table.ts';

/** Tools round the end of a partition up to a cylinder, and the end of an ISO 9660 volume up to a track. */
const CYLINDER_BYTES = 16 * 1024 * 1024;
const TRACK_BYTES = 1024 * 1024;

interface DeclaredSize {
  /** The structure that declares the size. */
  readonly source: string;
  readonly bytes: number;
}

/** Returns the declared size if the disk is smaller, or undefined if the disk is complete as far as is known. */
export async function findMissingEnd(disk: ByteSource): Promise<DeclaredSize | undefined> {
  const iso = await readIsoImage(disk);
  if (iso !== undefined) {
    const isCut = iso.volumeBytes > disk.size + TRACK_BYTES;
    return isCut ? { source: 'volume descriptor', bytes: iso.volumeBytes } : undefined;
  }
  const table = await readPartitionTable(disk);
  if (table === undefined) return undefined;
  const isCut = table.diskBytes > disk.size + (table.is === 'gpt' ? 0 : CYLINDER_BYTES);
  return isCut ? { source: 'partition table', bytes: table.diskBytes } : undefined;
}
