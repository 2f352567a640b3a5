/** Reads the partition table of a raw disk: MBR or GPT, with sectors of 512 bytes. Logical partitions are not read. */
import { readExactly, type ByteSource } from '#lib/disk-image/byte-source.ts';

export const DISK_SECTOR = 512;
const BOOT_CODE_BYTES = 440;
/** The fields of a FAT file system, which precede the code. */
const FAT_FIELDS_BYTES = 90;
const MBR_ENTRIES_AT = 446;
const MBR_ENTRY_BYTES = 16;
const BOOT_SIGNATURE = 0xaa55;
const PROTECTIVE = 0xee;
const EXTENDED: ReadonlySet<number> = new Set([0x05, 0x0f, 0x85]);
/** The limits of a GPT that is read; usual are 128 entries of 128 bytes. */
const MAX_GPT_ENTRIES = 1024;
const MAX_GPT_ENTRY_BYTES = 1024;
const NO_TYPE = '0'.repeat(32);

interface Partition {
  /** In hex: the byte of an MBR, or the 16 bytes of a GPT in their order on disk. */
  readonly type: string;
  readonly at: number;
  readonly bytes: number;
}

export interface PartitionTable {
  readonly is: 'mbr' | 'gpt';
  readonly partitions: readonly Partition[];
  /** True if there is a partition that may contain others. */
  readonly hasExtended: boolean;
  /** The size that the disk must have at least, according to the table. */
  readonly diskBytes: number;
}

/** Reports whether the boot sector has the signature that BIOS requires, and code. */
export function hasBootCode(sector: Buffer): boolean {
  const from = isFatSector(sector) ? FAT_FIELDS_BYTES : 0;
  return hasBootSignature(sector) && sector.subarray(from, BOOT_CODE_BYTES).some((byte) => byte !== 0);
}

const hasBootSignature = (sector: Buffer) => sector.readUInt16LE(DISK_SECTOR - 2) === BOOT_SIGNATURE;

/** Reports whether the sector is the first one of a FAT file system. */
export function isFatSector(sector: Buffer): boolean {
  const name = (at: number) => sector.toString('latin1', at, at + 3) === 'FAT';
  return hasBootSignature(sector) && (name(54) || name(82));
}

/** Returns undefined if there is no table, or if it is invalid or not known. */
export async function readPartitionTable(disk: ByteSource): Promise<PartitionTable | undefined> {
  const sector = await readExactly(disk, DISK_SECTOR, 0);
  if (sector === undefined || !hasBootSignature(sector)) return undefined;
  const mbr = parseMbr(sector);
  if (mbr === undefined || isFatSector(sector)) return undefined;
  return mbr.partitions.some(({ type }) => type === hexByte(PROTECTIVE)) ? await readGpt(disk) : mbr;
}

const hexByte = (byte: number) => byte.toString(16).padStart(2, '0');

/** Returns undefined if the entries are not those of partitions, as in the boot sector of a file system. */
function parseMbr(sector: Buffer): PartitionTable | undefined {
  const entries = [0, 1, 2, 3].map((i) => sector.subarray(MBR_ENTRIES_AT + i * MBR_ENTRY_BYTES));
  const used = entries.filter((entry) => entry.readUInt8(4) !== 0);
  const isTable = used.length > 0 && entries.every((entry) => (entry.readUInt8(0) & 0x7f) === 0);
  if (!isTable) return undefined;
  const partitions = used.map((entry) => ({
    type: hexByte(entry.readUInt8(4)),
    at: entry.readUInt32LE(8) * DISK_SECTOR,
    bytes: entry.readUInt32LE(12) * DISK_SECTOR,
  }));
  const hasExtended = used.some((entry) => EXTENDED.has(entry.readUInt8(4)));
  return { is: 'mbr', partitions, hasExtended, diskBytes: Math.max(...partitions.map(endOf)) };
}

const endOf = ({ at, bytes }: Partition) => at + bytes;

async function readGpt(disk: ByteSource): Promise<PartitionTable | undefined> {
  const header = await readExactly(disk, DISK_SECTOR, DISK_SECTOR);
  if (header?.toString('latin1', 0, 8) !== 'EFI PART') return undefined;
  const [backup, entriesAt] = [header.readBigUInt64LE(32), header.readBigUInt64LE(72)].map(
    (lba) => Number(lba) * DISK_SECTOR,
  );
  const [count, entryBytes] = [header.readUInt32LE(80), header.readUInt32LE(84)];
  const isValid = count > 0 && count <= MAX_GPT_ENTRIES && entryBytes >= 128 && entryBytes <= MAX_GPT_ENTRY_BYTES;
  if (!isValid || backup === undefined || entriesAt === undefined) return undefined;
  const table = await readExactly(disk, count * entryBytes, entriesAt);
  if (table === undefined) return undefined;
  const entries = Array.from({ length: count }, (_, i) => table.subarray(i * entryBytes, (i + 1) * entryBytes));
  const partitions = entries.flatMap((entry): Partition[] => {
    const type = entry.toString('hex', 0, 16);
    const [first, last] = [Number(entry.readBigUInt64LE(32)), Number(entry.readBigUInt64LE(40))];
    return type === NO_TYPE ? [] : [{ type, at: first * DISK_SECTOR, bytes: (last - first + 1) * DISK_SECTOR }];
  });
  return { is: 'gpt', partitions, hasExtended: false, diskBytes: backup + DISK_SECTOR };
}
