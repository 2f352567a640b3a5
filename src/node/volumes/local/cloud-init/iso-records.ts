/** Builds the records of ISO 9660 (ECMA-119) that our CD images need. Many numbers are stored in both byte orders. */
export const SECTOR_BYTES = 2048;
/** The names of a directory for itself and for its parent. */
export const ROOT_NAME = Buffer.from([0]);
export const PARENT_NAME = Buffer.from([1]);

export interface Extent {
  readonly sector: number;
  readonly bytes: number;
}

const DIRECTORY_FLAG = 2;
const RECORD_BYTES = 33;
/** 2000-01-01 UTC, so that the same files give the same bytes. */
const DATE = [100, 1, 1, 0, 0, 0, 0];
/** No date, in the long form. */
const NO_DATE = `${'0'.repeat(16)}\0`;

function both16(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16LE(value, 0);
  bytes.writeUInt16BE(value, 2);
  return bytes;
}

export function both32(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeUInt32LE(value, 0);
  bytes.writeUInt32BE(value, 4);
  return bytes;
}

export function directoryRecord(
  name: Buffer,
  { sector, bytes }: Extent,
  { isDirectory = false, systemUse = Buffer.alloc(0) }: { isDirectory?: boolean; systemUse?: Buffer } = {},
): Buffer {
  const padding = Buffer.alloc(name.length % 2 === 0 ? 1 : 0);
  const length = roundUpToEven(RECORD_BYTES + name.length + padding.length + systemUse.length);
  const record = Buffer.concat([
    Buffer.from([length, 0]),
    both32(sector),
    both32(bytes),
    Buffer.from([...DATE, isDirectory ? DIRECTORY_FLAG : 0, 0, 0]),
    both16(1),
    Buffer.from([name.length]),
    name,
    padding,
    systemUse,
  ]);
  return Buffer.concat([record, Buffer.alloc(length - record.length)]);
}

/** Builds a path table, whose only entry is the root. */
export function pathTable({ sector }: Extent, order: 'little' | 'big'): Buffer {
  const table = Buffer.alloc(10);
  table[0] = 1;
  if (order === 'little') {
    table.writeUInt32LE(sector, 2);
    table.writeUInt16LE(1, 6);
  } else {
    table.writeUInt32BE(sector, 2);
    table.writeUInt16BE(1, 6);
  }
  return table;
}

interface VolumeFields {
  readonly volumeId: string;
  readonly sectors: number;
  readonly root: Extent;
  readonly tables: { readonly little: number; readonly big: number };
}

const VOLUME_ID_AT = 40;
const VOLUME_ID_BYTES = 32;
const SIZE_AT = 80;
const ESCAPES_AT = 88;
const TABLES_AT = 132;
const ROOT_AT = 156;
const TEXTS_AT = 190;
const DATES_AT = 813;
const STRUCTURE_VERSION_AT = 881;
/** UCS-2, level 3. */
const JOLIET_ESCAPE = '%/E';

export function volumeDescriptor(
  kind: 'primary' | 'joliet',
  { volumeId, sectors, root, tables }: VolumeFields,
): Buffer {
  const isJoliet = kind === 'joliet';
  const volume = Buffer.alloc(SECTOR_BYTES);
  const spaces = (from: number, to: number) => volume.fill(isJoliet ? '\0 ' : ' ', from, to, 'latin1');
  volume.write(`${isJoliet ? '\x02' : '\x01'}CD001\x01`, 0, 'latin1');
  spaces(8, VOLUME_ID_AT + VOLUME_ID_BYTES);
  const id = isJoliet ? Buffer.from(volumeId, 'utf16le').swap16() : Buffer.from(volumeId, 'latin1');
  id.copy(volume, VOLUME_ID_AT, 0, VOLUME_ID_BYTES);
  both32(sectors).copy(volume, SIZE_AT);
  if (isJoliet) volume.write(JOLIET_ESCAPE, ESCAPES_AT, 'latin1');
  // Volume set size 1, volume number 1, sector size.
  Buffer.concat([both16(1), both16(1), both16(SECTOR_BYTES)]).copy(volume, 120);
  both32(pathTable(root, 'little').length).copy(volume, TABLES_AT);
  volume.writeUInt32LE(tables.little, TABLES_AT + 8);
  volume.writeUInt32BE(tables.big, TABLES_AT + 16);
  directoryRecord(ROOT_NAME, root, { isDirectory: true }).copy(volume, ROOT_AT);
  spaces(TEXTS_AT, DATES_AT);
  volume.write(NO_DATE.repeat(4), DATES_AT, 'latin1');
  volume[STRUCTURE_VERSION_AT] = 1;
  return volume;
}

function roundUpToEven(length: number): number {
  return length + (length % 2);
}
