/**
 * What a drive says is in it: a file by its path, a volume by the four ids of old, or a block device by its GUID or UUID.
 * Files are named below one directory (host-images) and nowhere else. Pure; whether they are there is host-images.ts's.
 */
import type { SentMap } from '#node/host-api/sent-values.ts';
import { shown, textOf, wordOf } from '#node/host-api/sent-values.ts';

export type SourceName =
  | { readonly is: 'none' }
  /** Names below host-images, the last one of a file. */
  | { readonly is: 'file'; readonly names: readonly string[] }
  | { readonly is: 'lun'; readonly guid?: string; readonly uuid?: string }
  | { readonly is: 'wrong'; readonly fault: string };

const VOLUME_KEYS = ['poolID', 'domainID', 'imageID', 'volumeID'] as const;
/** Where the hosts of old had what is in host-images here. */
const OLD_ROOT = '/rhev/data-center/';
const MAX_NAMES = 32;

export function sourceOf(drive: SentMap, imagesDir: string): SourceName {
  const named = [pathSource(drive['path'], imagesDir), volumeSource(drive), lunSource(drive)].filter(
    ({ is }) => is !== 'none',
  );
  const [first = { is: 'none' } as const, second] = named;
  const wrong = named.find(({ is }) => is === 'wrong');
  if (wrong !== undefined) return wrong;
  if (second === undefined || sourceKey(first) === sourceKey(second)) return first;
  return { is: 'wrong', fault: `expected one of path, ${VOLUME_KEYS.join(' + ')}, GUID and UUID` };
}

/** Equal for what is the same, and for nothing else; undefined where nothing is in it. */
export function sourceKey(source: SourceName): string | undefined {
  if (source.is === 'file') return `file ${source.names.join('/')}`;
  return source.is === 'lun' ? `lun ${source.guid ?? ''} ${source.uuid ?? ''}` : undefined;
}

function pathSource(path: unknown, imagesDir: string): SourceName {
  if (path === undefined || path === null || path === '') return { is: 'none' };
  const text = textOf(path);
  if (text === undefined) return { is: 'wrong', fault: `path ${shown(path)} is none` };
  const root = [`${imagesDir}/`, OLD_ROOT].find((known) => text.startsWith(known)) ?? '';
  const names = text.slice(root.length).split('/');
  if (names.length <= MAX_NAMES && names.every(isPlainName)) return { is: 'file', names };
  return { is: 'wrong', fault: `path ${shown(path)} is no file below ${imagesDir}` };
}

function volumeSource(drive: SentMap): SourceName {
  const words = VOLUME_KEYS.map((key) => wordOf(drive[key]));
  if (words.every((word) => word === undefined)) return { is: 'none' };
  const [pool, domain, image, volume] = words;
  const names = [pool, domain, 'images', image, volume].map((name) => name ?? '');
  if (names.every(isPlainName)) return { is: 'file', names };
  return { is: 'wrong', fault: `expected all of ${VOLUME_KEYS.join(', ')}, each of them a plain name` };
}

/** What a GUID may look like, and where it is then, is known to those who look for it. */
function lunSource(drive: SentMap): SourceName {
  const [guid, uuid] = [wordOf(drive['GUID']), wordOf(drive['UUID'])];
  if (guid !== undefined && uuid !== undefined) return { is: 'wrong', fault: 'expected either a GUID or a UUID' };
  if (guid !== undefined) return { is: 'lun', guid };
  return uuid === undefined ? { is: 'none' } : { is: 'lun', uuid };
}

function isPlainName(name: string): boolean {
  return name !== '' && name !== '.' && name !== '..' && name.length <= 255;
}
