/**
 * Reads the source of a disk from the request: a file by its path, a volume by oVirt's four ids, or a block device by
 * its GUID or UUID. Files must be below one directory, host-images. Pure; host-images.ts checks whether the source
 * exists.
 */
import type { SentMap } from '#node/host-api/sent/sent-values.ts';
import { quoteSentValue, readText, readWord } from '#node/host-api/sent/sent-values.ts';

export type SentDiskSource =
  | { readonly is: 'none' }
  /** The path below host-images, one name per directory; the last one is the file. */
  | { readonly is: 'file'; readonly names: readonly string[] }
  | { readonly is: 'lun'; readonly guid?: string; readonly uuid?: string }
  | { readonly is: 'invalid'; readonly error: string };

const VOLUME_KEYS = ['poolID', 'domainID', 'imageID', 'volumeID'] as const;
/** The directory of oVirt's hosts that corresponds to host-images. */
const OVIRT_ROOT = '/rhev/data-center/';
const MAX_NAMES = 32;

export function readDiskSource(drive: SentMap, imagesDir: string): SentDiskSource {
  const sources = [readPath(drive['path'], imagesDir), readVolume(drive), readLun(drive)].filter(
    ({ is }) => is !== 'none',
  );
  const [first = { is: 'none' } as const, second] = sources;
  const invalid = sources.find(({ is }) => is === 'invalid');
  if (invalid !== undefined) return invalid;
  if (second === undefined || sourceKey(first) === sourceKey(second)) return first;
  return { is: 'invalid', error: `expected one of path, ${VOLUME_KEYS.join(' + ')}, GUID and UUID` };
}

/** Returns a key that is equal for equal sources only, or undefined if there is no valid source. */
export function sourceKey(source: SentDiskSource): string | undefined {
  if (source.is === 'file') return `file ${source.names.join('/')}`;
  return source.is === 'lun' ? `lun ${source.guid ?? ''} ${source.uuid ?? ''}` : undefined;
}

function readPath(path: unknown, imagesDir: string): SentDiskSource {
  if (path === undefined || path === null || path === '') return { is: 'none' };
  const text = readText(path);
  if (text === undefined) return { is: 'invalid', error: `path ${quoteSentValue(path)}; expected a string` };
  const root = [`${imagesDir}/`, OVIRT_ROOT].find((known) => text.startsWith(known)) ?? '';
  const names = text.slice(root.length).split('/');
  if (names.length <= MAX_NAMES && names.every(isPlainName)) return { is: 'file', names };
  return { is: 'invalid', error: `path ${quoteSentValue(path)} is not a file below ${imagesDir}` };
}

function readVolume(drive: SentMap): SentDiskSource {
  const words = VOLUME_KEYS.map((key) => readWord(drive[key]));
  if (words.every((word) => word === undefined)) return { is: 'none' };
  const [pool, domain, image, volume] = words;
  const names = [pool, domain, 'images', image, volume].map((name) => name ?? '');
  if (names.every(isPlainName)) return { is: 'file', names };
  return { is: 'invalid', error: `expected all of ${VOLUME_KEYS.join(', ')}, each of them a name without slashes` };
}

/** Reads a block device. The form of a GUID is checked later, by direct-lun.ts. */
function readLun(drive: SentMap): SentDiskSource {
  const [guid, uuid] = [readWord(drive['GUID']), readWord(drive['UUID'])];
  if (guid !== undefined && uuid !== undefined) return { is: 'invalid', error: 'expected either a GUID or a UUID' };
  if (guid !== undefined) return { is: 'lun', guid };
  return uuid === undefined ? { is: 'none' } : { is: 'lun', uuid };
}

function isPlainName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255;
}
