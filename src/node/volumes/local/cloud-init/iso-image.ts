/**
 * Builds a CD image with a few files in its root directory. Pure; the same files give the same bytes.
 *
 *   sector  0..15  system area          19, 20  path tables
 *          16      primary volume           21, 22  path tables, Joliet
 *          17      Joliet volume            23..    root directory (Rock Ridge names), then that of Joliet
 *          18      terminator               ..      files
 *
 * ISO 9660 itself has only short names in capital letters. The real names are stored twice: Linux reads Rock Ridge,
 * Windows reads Joliet.
 */
import { invariant } from '#lib/invariant.ts';
import {
  directoryRecord,
  pathTable,
  ROOT_NAME,
  PARENT_NAME,
  SECTOR_BYTES,
  volumeDescriptor,
  type Extent,
} from '#node/volumes/local/cloud-init/iso-records.ts';
import { buildRockRidge } from '#node/volumes/local/cloud-init/rock-ridge.ts';

const PRIMARY = 16;
const JOLIET = 17;
const TERMINATOR = 18;
const PATH_TABLES = { primary: { little: 19, big: 20 }, joliet: { little: 21, big: 22 } };
const FIRST_ROOT = 23;
/** Enough for the keys of an API object. */
export const MAX_FILES = 256;
/** A directory record has at most 255 bytes, and Joliet takes two per character. */
export const MAX_NAME = 100;

interface PlacedFile {
  readonly name: string;
  readonly content: Buffer;
  readonly extent: Extent;
}

export function buildIsoImage(volumeId: string, files: ReadonlyMap<string, Buffer>): Buffer {
  const names = [...files.keys()].sort();
  // The length of a directory does not depend on the location of the files.
  const unknownExtent = { sector: 0, bytes: 0 };
  const unplaced = names.map((name) => ({ name, content: Buffer.alloc(0), extent: unknownExtent }));
  const primary = { sector: FIRST_ROOT, bytes: primaryRoot(unknownExtent, unplaced).length };
  const joliet = {
    sector: primary.sector + sectorsOf(primary.bytes),
    bytes: jolietRoot(unknownExtent, unplaced).length,
  };
  const firstFile = joliet.sector + sectorsOf(joliet.bytes);
  const placed = placeFiles(files, firstFile);
  const end = placed.reduce(
    (sector, { extent }) => Math.max(sector, extent.sector + sectorsOf(extent.bytes)),
    firstFile,
  );
  const image = Buffer.alloc(end * SECTOR_BYTES);
  const put = (sector: number, bytes: Buffer) => bytes.copy(image, sector * SECTOR_BYTES);

  for (const kind of ['primary', 'joliet'] as const) {
    const root = kind === 'primary' ? primary : joliet;
    const tables = PATH_TABLES[kind];
    const volume = volumeDescriptor(kind, { volumeId, sectors: end, root, tables });
    put(kind === 'primary' ? PRIMARY : JOLIET, volume);
    put(tables.little, pathTable(root, 'little'));
    put(tables.big, pathTable(root, 'big'));
    put(root.sector, kind === 'primary' ? primaryRoot(root, placed) : jolietRoot(root, placed));
  }
  put(TERMINATOR, Buffer.from('\xffCD001\x01', 'latin1'));
  for (const { content, extent } of placed) put(extent.sector, content);
  return image;
}

/** Assigns sectors to the files, sorted by name as directories require. */
function placeFiles(files: ReadonlyMap<string, Buffer>, firstSector: number): readonly PlacedFile[] {
  invariant(files.size <= MAX_FILES, 'a CD image has at most MAX_FILES files');
  let sector = firstSector;
  const names = [...files.keys()].sort();
  return names.map((name) => {
    invariant(/^[A-Za-z0-9._-]+$/.test(name) && name.length <= MAX_NAME, 'files of a CD image have simple names');
    const content = files.get(name) ?? Buffer.alloc(0);
    const extent = { sector, bytes: content.length };
    sector += sectorsOf(content.length);
    return { name, content, extent };
  });
}

function primaryRoot(root: Extent, files: readonly PlacedFile[]): Buffer {
  return padToSectors([
    directoryRecord(ROOT_NAME, root, { isDirectory: true, systemUse: buildRockRidge({ type: 'root' }) }),
    directoryRecord(PARENT_NAME, root, { isDirectory: true, systemUse: buildRockRidge({ type: 'parent' }) }),
    ...files.map(({ name, extent }, index) =>
      directoryRecord(Buffer.from(shortName(name, index)), extent, {
        systemUse: buildRockRidge({ type: 'file', name }),
      }),
    ),
  ]);
}

function jolietRoot(root: Extent, files: readonly PlacedFile[]): Buffer {
  return padToSectors([
    directoryRecord(ROOT_NAME, root, { isDirectory: true }),
    directoryRecord(PARENT_NAME, root, { isDirectory: true }),
    ...files.map(({ name, extent }) => directoryRecord(Buffer.from(`${name};1`, 'utf16le').swap16(), extent)),
  ]);
}

/** Pads the records to whole sectors; no record crosses the end of a sector. */
function padToSectors(records: readonly Buffer[]): Buffer {
  const parts: Buffer[] = [];
  let used = 0;
  const fill = () => {
    if (used % SECTOR_BYTES === 0) return;
    const rest = SECTOR_BYTES - (used % SECTOR_BYTES);
    parts.push(Buffer.alloc(rest));
    used += rest;
  };
  for (const record of records) {
    if ((used % SECTOR_BYTES) + record.length > SECTOR_BYTES) fill();
    parts.push(record);
    used += record.length;
  }
  fill();
  return Buffer.concat(parts);
}

/** Returns a name of eight capital letters; the number makes it unique and keeps the order. */
function shortName(name: string, index: number): string {
  if (index < 10 && /^[a-z-]+$/.test(name)) return `${name.toUpperCase().replaceAll('-', '_').slice(0, 7)}${index}.;1`;
  return `F${String(index).padStart(7, '0')}.;1`;
}

function sectorsOf(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES);
}
