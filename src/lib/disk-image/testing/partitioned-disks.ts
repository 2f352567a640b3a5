/** Builds the first bytes of disks with partition tables and boot catalogs. Pure. */
import { beginningOf, type ByteSource } from '#lib/disk-image/byte-source.ts';

const SECTOR = 512;
const MIB = 1024 * 1024;
const ESP = '28732ac11ff8d211ba4b00a0c93ec93b';
const LINUX = 'af3dc60f838472478e793d69d8477de4';

interface DiskParts {
  readonly bytes?: number;
  readonly bootCode?: boolean;
  /** Types of the partitions of an MBR, in hex. Each begins 1 MiB after the previous one. */
  readonly mbr?: readonly number[];
  /** Kinds of the partitions of a GPT. */
  readonly gpt?: readonly ('esp' | 'linux')[];
  /** The number of a partition with a FAT file system. */
  readonly fat?: number;
  /** Platforms in the boot catalog of an ISO 9660 image. */
  readonly catalog?: readonly number[];
}

/** Returns the disk. Its partitions end with the disk, which has 8 MiB. */
export function aDisk({ bytes = 8 * MIB, bootCode, mbr, gpt, fat, catalog }: DiskParts): Buffer {
  const disk = Buffer.alloc(bytes);
  if (bootCode === true) disk.write('\xeb\x63\x90', 0, 'latin1');
  if (mbr !== undefined || gpt !== undefined || bootCode === true) disk.writeUInt16LE(0xaa55, SECTOR - 2);
  for (const [i, type] of (gpt === undefined ? (mbr ?? []) : [0xee]).entries()) {
    const entry = disk.subarray(446 + i * 16);
    entry.writeUInt8(type, 4);
    entry.writeUInt32LE(startOf(i), 8);
    entry.writeUInt32LE(bytes / SECTOR - startOf(i), 12);
  }
  if (gpt !== undefined) writeGpt(disk, gpt);
  if (fat !== undefined) writeFat(disk.subarray(startOf(fat) * SECTOR));
  if (catalog !== undefined) writeCatalog(disk, catalog);
  return disk;
}

export const asSource = (disk: Buffer): ByteSource => beginningOf(disk, disk.length);

const startOf = (partition: number) => ((partition + 1) * MIB) / SECTOR;

function writeGpt(disk: Buffer, kinds: readonly ('esp' | 'linux')[]): void {
  const header = disk.subarray(SECTOR);
  const last = disk.length / SECTOR - 1;
  header.write('EFI PART', 0, 'latin1');
  header.writeBigUInt64LE(BigInt(last), 32);
  header.writeBigUInt64LE(2n, 72);
  header.writeUInt32LE(128, 80);
  header.writeUInt32LE(128, 84);
  for (const [i, kind] of kinds.entries()) {
    const entry = disk.subarray(2 * SECTOR + i * 128);
    entry.write(kind === 'esp' ? ESP : LINUX, 0, 'hex');
    entry.writeBigUInt64LE(BigInt(startOf(i)), 32);
    entry.writeBigUInt64LE(BigInt(last - 33), 40);
  }
}

function writeFat(sector: Buffer): void {
  sector.write('FAT16   ', 54, 'latin1');
  sector.writeUInt16LE(0xaa55, SECTOR - 2);
}

function writeCatalog(disk: Buffer, platforms: readonly number[]): void {
  const [block, at] = [2048, 20];
  const descriptor = (i: number, type: number) => {
    const one = disk.subarray((16 + i) * block);
    one.writeUInt8(type, 0);
    one.write('CD001', 1, 'latin1');
    return one;
  };
  descriptor(0, 1).writeUInt32LE(disk.length / block, 80);
  const record = descriptor(1, 0);
  record.write('EL TORITO SPECIFICATION', 7, 'latin1');
  record.writeUInt32LE(at, 0x47);
  descriptor(2, 255);
  const catalog = disk.subarray(at * block);
  for (const [i, platform] of platforms.entries()) {
    catalog.set([i === 0 ? 0x01 : 0x91, platform], i * 64);
    catalog.writeUInt8(0x88, i * 64 + 32);
  }
}
