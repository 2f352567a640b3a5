/**
 * An image file in a directory: found or made, as large as it is to be, and owned by whoever runs guests. The format is
 * decided once and remembered beside volumes of ours: a guest that writes a qcow2 header into its raw disk must not get
 * it taken for one at its next start.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskSource } from '#node/definition/domain-definition.ts';
import { isErrorWithCode, type Directory } from './directory.ts';
import { HEADER_BYTES, imageFormat, type ImageFormat } from './image-format.ts';
import { failed, isRefusal, missing, type GuestUser, type Refusal, type VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_DIRECT, O_EXCL, O_RDONLY, O_RDWR } = constants;

export const PRIVATE_FILE = 0o600;
const REMEMBERED_MAX_BYTES = 64;

export interface ImageWish {
  readonly name: string;
  /** How large it is made where it is missing; undefined = it must be there. */
  readonly createBytes?: number;
  /** Where it is smaller, it grows; it never shrinks. */
  readonly growToBytes?: number;
  /** Written as it is found and held to it later. */
  readonly formatFile?: string;
  /** Only its bytes count, whatever they look like: what lies behind a block device. */
  readonly alwaysRaw?: boolean;
  readonly readonly?: boolean;
}

export interface Image {
  readonly is: 'ready';
  readonly source: DiskSource;
  /** As large as the guest sees it. */
  readonly bytes: number;
  /** Whether it can be opened past the page cache. */
  readonly cacheNone: boolean;
}

/** May be repeated; a repeated call changes nothing. System errors are thrown. */
export async function ensureImage(
  directory: Directory,
  wish: ImageWish,
  { guestUser, run }: Pick<VolumesHost, 'guestUser' | 'run'>,
): Promise<Image | Refusal> {
  const path = join(directory.path, wish.name);
  const opened = await openOrMake(directory, wish, path);
  if (isRefusal(opened)) return opened;
  await using file = opened;
  const stats = await file.stat();
  if (!stats.isFile()) return failed('ImageRefused', `Cannot use image "${path}": it is no file`);

  const format = await formatOf(directory, file, wish, path);
  if (isRefusal(format)) return format;
  const wanted = Math.max(wish.growToBytes ?? 0, stats.size === 0 ? (wish.createBytes ?? 0) : 0);
  let bytes = format.is === 'qcow2' ? format.virtualBytes : stats.size;
  if (bytes < wanted) {
    if (format.is === 'raw') await file.truncate(wanted);
    else await run('qemu-img', ['resize', '-f', 'qcow2', path, String(wanted)]);
    bytes = wanted;
  }
  await giveTo(file, guestUser);
  return {
    is: 'ready',
    source: { path, format: format.is },
    bytes,
    cacheNone: await canSkipCache(directory, wish.name),
  };
}

/** Files belong to the one that opens them, and to nobody else. */
export async function giveTo(file: FileHandle, user: GuestUser | undefined): Promise<void> {
  if (user === undefined) return;
  const { uid, gid, mode } = await file.stat();
  if (uid !== user.uid || gid !== user.gid) await file.chown(user.uid, user.gid);
  if ((mode & 0o777) !== PRIVATE_FILE) await file.chmod(PRIVATE_FILE);
}

async function openOrMake(directory: Directory, wish: ImageWish, path: string): Promise<FileHandle | Refusal> {
  try {
    const found = await directory.open(wish.name, wish.readonly === true ? O_RDONLY : O_RDWR);
    if (found !== undefined) return found;
    const made =
      wish.createBytes === undefined
        ? undefined
        : await directory.open(wish.name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
    return made ?? missing('ImageMissing', `Cannot use image "${path}": there is none`);
  } catch (error) {
    if (!isErrorWithCode(error, 'ELOOP', 'EISDIR')) throw error;
    return failed('ImageRefused', `Cannot use image "${path}": it is a link or a directory; expected a file`);
  }
}

async function formatOf(
  directory: Directory,
  file: FileHandle,
  { alwaysRaw, formatFile }: ImageWish,
  path: string,
): Promise<ImageFormat | Refusal> {
  if (alwaysRaw === true) return { is: 'raw' };
  const looks = await looksLike(file, path);
  if (formatFile === undefined) return looks;

  const remembered = await remember(
    directory,
    formatFile,
    looks.is === 'qcow2' ? 'qcow2' : 'raw',
    looks.is !== 'failed',
  );
  if (remembered !== undefined && remembered !== looks.is) {
    return failed(
      'ImageFormatChanged',
      `Cannot use image "${path}": it looks like ${looks.is === 'raw' ? 'raw' : 'qcow2'} but was ${remembered}; ` +
        `if you replaced it on purpose, remove "${join(directory.path, formatFile)}"`,
    );
  }
  return looks;
}

export async function looksLike(file: FileHandle, path: string): Promise<ImageFormat | Refusal> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  return imageFormat(header.subarray(0, bytesRead), path);
}

/** The one word in a file that we wrote beside an image; undefined where there is none. */
export async function readNote(directory: Directory, name: string): Promise<string | undefined> {
  await using note = await directory.open(name, O_RDONLY);
  if (note === undefined) return undefined;
  const { buffer, bytesRead } = await note.read(Buffer.alloc(REMEMBERED_MAX_BYTES), 0, REMEMBERED_MAX_BYTES, 0);
  return buffer.toString('utf8', 0, bytesRead).trim();
}

/** On disk when it resolves, but for the name of it (Directory.sync). */
export async function writeNote(directory: Directory, name: string, word: string): Promise<void> {
  await replaceFile(directory, name, Buffer.from(`${word}\n`), undefined);
}

/** What was written at the first time, which is now where nothing was written yet. */
async function remember(
  directory: Directory,
  name: string,
  looks: string,
  isUsable: boolean,
): Promise<string | undefined> {
  const known = await readNote(directory, name);
  if (known !== undefined) return known;
  if (!isUsable) return undefined;
  await writeNote(directory, name, looks);
  return looks;
}

/** The old content or the new one, whenever we are killed, and whenever the machine is. */
export async function replaceFile(
  directory: Directory,
  name: string,
  content: Buffer,
  owner: GuestUser | undefined,
): Promise<void> {
  const temporary = `${name}.new`;
  await directory.unlink(temporary);
  {
    await using file = await directory.open(temporary, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
    await file?.writeFile(content);
    if (file !== undefined) await giveTo(file, owner);
    await file?.sync();
  }
  await directory.rename(temporary, name);
}

async function canSkipCache(directory: Directory, name: string): Promise<boolean> {
  try {
    await using file = await directory.open(name, O_RDONLY | O_DIRECT);
    return file !== undefined;
  } catch (error) {
    if (isErrorWithCode(error, 'EINVAL', 'EOPNOTSUPP')) return false;
    throw error;
  }
}
