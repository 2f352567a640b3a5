/**
 * A CD image with a few files in its root, as bytes. Pure, and the same bytes for the same files.
 *
 *   sector  0..15  system area          19, 20  path tables
 *          16      primary volume           21, 22  path tables, Joliet
 *          17      Joliet volume            23      root directory (Rock Ridge names)
 *          18      terminator               24      root directory, Joliet
 *                                           25..    files
 *
 * ISO 9660 itself knows only short names in capitals, so the real ones are there twice: Linux reads Rock Ridge, Windows
 * reads Joliet.
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
} from './iso-records.ts';
import { rockRidge } from './rock-ridge.ts';

const PRIMARY = 16;
const JOLIET = 17;
const TERMINATOR = 18;
const PATH_TABLES = { primary: { little: 19, big: 20 }, joliet: { little: 21, big: 22 } };
const PRIMARY_ROOT = 23;
const JOLIET_ROOT = 24;
const FIRST_FILE = 25;
/** The records of the root must fit into one sector. */
const MAX_FILES = 8;
const MAX_NAME = 32;

interface PlacedFile {
  readonly name: string;
  readonly content: Buffer;
  readonly extent: Extent;
}

export function isoImage(volumeId: string, files: ReadonlyMap<string, Buffer>): Buffer {
  const placed = place(files);
  const end = placed.reduce(
    (sector, { extent }) => Math.max(sector, extent.sector + sectorsOf(extent.bytes)),
    FIRST_FILE,
  );
  const image = Buffer.alloc(end * SECTOR_BYTES);
  const put = (sector: number, bytes: Buffer) => bytes.copy(image, sector * SECTOR_BYTES);

  for (const kind of ['primary', 'joliet'] as const) {
    const root = { sector: kind === 'primary' ? PRIMARY_ROOT : JOLIET_ROOT, bytes: SECTOR_BYTES };
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

/** Sorted, as directories must be. */
function place(files: ReadonlyMap<string, Buffer>): readonly PlacedFile[] {
  invariant(files.size <= MAX_FILES, 'a CD image of ours has few files');
  let sector = FIRST_FILE;
  const names = [...files.keys()].sort();
  return names.map((name) => {
    invariant(/^[a-z-]+$/.test(name) && name.length <= MAX_NAME, 'files of a CD image have simple names');
    const content = files.get(name) ?? Buffer.alloc(0);
    const extent = { sector, bytes: content.length };
    sector += sectorsOf(content.length);
    return { name, content, extent };
  });
}

function primaryRoot(root: Extent, files: readonly PlacedFile[]): Buffer {
  return Buffer.concat([
    directoryRecord(ROOT_NAME, root, { isDirectory: true, systemUse: rockRidge({ type: 'root' }) }),
    directoryRecord(PARENT_NAME, root, { isDirectory: true, systemUse: rockRidge({ type: 'parent' }) }),
    ...files.map(({ name, extent }, index) =>
      directoryRecord(Buffer.from(shortName(name, index)), extent, { systemUse: rockRidge({ type: 'file', name }) }),
    ),
  ]);
}

function jolietRoot(root: Extent, files: readonly PlacedFile[]): Buffer {
  return Buffer.concat([
    directoryRecord(ROOT_NAME, root, { isDirectory: true }),
    directoryRecord(PARENT_NAME, root, { isDirectory: true }),
    ...files.map(({ name, extent }) => directoryRecord(Buffer.from(`${name};1`, 'utf16le').swap16(), extent)),
  ]);
}

/** Eight capitals; the number keeps apart what begins alike, and keeps the order. */
function shortName(name: string, index: number): string {
  return `${name.toUpperCase().replaceAll('-', '_').slice(0, 7)}${index}.;1`;
}

function sectorsOf(bytes: number): number {
  return Math.ceil(bytes / SECTOR_BYTES);
}
