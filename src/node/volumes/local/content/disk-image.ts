/**
 * Ensures an image file in a directory: found or created, with the requested size. The hypervisor makes it accessible to
 * the guest. The format of our own volumes is recorded beside them once, because a guest could write a qcow2 header into
 * its raw disk, which must not be taken for a qcow2 image at the next start.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { DiskSource } from '#node/hardware/domain-definition.ts';
import { isErrorWithCode, type Directory } from '#node/volumes/local/mounts/directory.ts';
import {
  failedRefusal,
  isVolumeRefusal,
  missingRefusal,
  waitingRefusal,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';
import { DAMAGE_ADVICE, IMAGE_DAMAGED, reportsDamage } from '#api/storage/image-damage.ts';
import { findCutOff, HEADER_BYTES, readImageHeader, type ImageHeader } from '#api/storage/image-header.ts';
import { errorMessage } from '#lib/error-message.ts';
import { ProgramError } from '#node/volumes/local/run-command.ts';

const { O_CREAT, O_DIRECT, O_EXCL, O_RDONLY, O_RDWR } = constants;

export const PRIVATE_FILE = 0o600;
const MAX_MARKER_BYTES = 64;

interface ImageOptions {
  readonly name: string;
  /** The size of a new image; undefined: the image must exist. */
  readonly createBytes?: number;
  /** A smaller image grows to this size; a larger one stays. */
  readonly growToBytes?: number;
  /** The file that records the format: written at the first use, checked later. */
  readonly formatFile?: string;
  /** True to skip the detection of the format, for images of block devices. */
  readonly alwaysRaw?: boolean;
  readonly readonly?: boolean;
}

export interface Image {
  readonly is: 'ready';
  readonly source: DiskSource;
  /** The size that the guest sees. */
  readonly bytes: number;
  /** True if the file supports direct I/O, which bypasses the page cache. */
  readonly cacheNone: boolean;
}

/** Finds or creates the image. May be repeated. Throws system errors. */
export async function ensureImage(
  directory: Directory,
  options: ImageOptions,
  host: Pick<VolumesHost, 'run'> & Partial<Space>,
): Promise<Image | VolumeRefusal> {
  const path = join(directory.path, options.name);
  const { run } = host;
  const opened = await openOrCreate(directory, options, path, host);
  if (isVolumeRefusal(opened)) return opened;
  await using file = opened;
  const stats = await file.stat();
  if (!stats.isFile()) return failedRefusal('ImageRefused', `Cannot use image "${path}": it is not a file`);

  const format = await checkFormat(directory, file, options, path);
  if (isVolumeRefusal(format)) return format;
  const cutOff = format.is === 'qcow2' ? findCutOff(await readHeader(file), stats.size) : undefined;
  if (cutOff !== undefined) return damagedRefusal(path, cutOff);
  const wantedBytes = Math.max(options.growToBytes ?? 0, stats.size === 0 ? (options.createBytes ?? 0) : 0);
  let bytes = format.is === 'qcow2' ? format.virtualBytes : stats.size;
  if (bytes < wantedBytes) {
    if (format.is === 'raw') await file.truncate(wantedBytes);
    else {
      const refusal = await growQcow2(path, wantedBytes, run);
      if (refusal !== undefined) return refusal;
    }
    bytes = wantedBytes;
  }
  return {
    is: 'ready',
    source: { path, format: format.is },
    bytes,
    cacheNone: await supportsDirectIo(directory, options.name),
  };
}

/** Returns a refusal if the image is damaged. Throws other errors. */
async function growQcow2(path: string, bytes: number, run: VolumesHost['run']): Promise<VolumeRefusal | undefined> {
  try {
    await run('qemu-img', ['resize', '-f', 'qcow2', path, String(bytes)]);
    return undefined;
  } catch (error) {
    const message = errorMessage(error);
    if (!(error instanceof ProgramError) || !reportsDamage(message)) throw error;
    return damagedRefusal(path, message);
  }
}

function damagedRefusal(path: string, why: string): VolumeRefusal {
  return failedRefusal(IMAGE_DAMAGED, `Cannot use image "${path}": it is damaged: ${why}; ${DAMAGE_ADVICE}`);
}

/** Takes a file back that the hypervisor gave to a guest. Requires root. */
export async function takeBack(file: FileHandle): Promise<void> {
  await file.chown(0, 0);
  await file.chmod(PRIVATE_FILE);
}

type Space = Pick<VolumesHost, 'freeBytes' | 'usableBytes'>;

/** Returns why a new image of this size is not created, or undefined if it is. */
async function refuseSpace(
  directory: Directory,
  bytes: number | undefined,
  path: string,
  { freeBytes, usableBytes }: Partial<Space>,
): Promise<VolumeRefusal | undefined> {
  if (bytes === undefined) return undefined;
  const most = (await usableBytes?.(directory.path)) ?? bytes;
  if (bytes > most) {
    const why = `it would have ${bytes} bytes, and its file system can hold at most ${most}`;
    return failedRefusal('NoSpaceLeft', `Cannot create image "${path}": ${why}; use a smaller disk`);
  }
  if (((await freeBytes?.(directory.path)) ?? 0) >= 0) return undefined;
  const why = 'the node keeps the remaining space of its disk for running guests and for itself';
  return waitingRefusal('NoSpaceLeft', `Cannot create image "${path}": ${why}; free space on the node`);
}

async function openOrCreate(
  directory: Directory,
  options: ImageOptions,
  path: string,
  space: Partial<Space>,
): Promise<FileHandle | VolumeRefusal> {
  try {
    const found = await directory.open(options.name, options.readonly === true ? O_RDONLY : O_RDWR);
    if (found !== undefined) return found;
    const refusal = await refuseSpace(directory, options.createBytes, path, space);
    if (refusal !== undefined) return refusal;
    const created =
      options.createBytes === undefined
        ? undefined
        : await directory.open(options.name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
    return created ?? missingRefusal('ImageMissing', `Cannot use image "${path}": it does not exist`);
  } catch (error) {
    if (!isErrorWithCode(error, 'ELOOP', 'EISDIR')) throw error;
    return failedRefusal('ImageRefused', `Cannot use image "${path}": it is a link or a directory; expected a file`);
  }
}

async function checkFormat(
  directory: Directory,
  file: FileHandle,
  { alwaysRaw, formatFile }: ImageOptions,
  path: string,
): Promise<ImageFormat | VolumeRefusal> {
  if (alwaysRaw === true) return { is: 'raw' };
  const detected = await detectFormat(file, path);
  if (formatFile === undefined) return detected;

  const recorded = await readOrRecordFormat(
    directory,
    formatFile,
    detected.is === 'qcow2' ? 'qcow2' : 'raw',
    detected.is !== 'failed',
  );
  if (recorded === 'qcow2' && detected.is !== 'qcow2') {
    if (detected.is === 'failed') return detected;
    const why = `it no longer begins with a qcow2 header`;
    return damagedRefusal(path, `${why}, or was replaced; in that case remove "${join(directory.path, formatFile)}"`);
  }
  if (recorded !== undefined && recorded !== detected.is) {
    return failedRefusal(
      'ImageFormatChanged',
      `Cannot use image "${path}": its format is ${detected.is === 'raw' ? 'raw' : 'qcow2'}, but ${recorded} is recorded; ` +
        `if you replaced it on purpose, remove "${join(directory.path, formatFile)}"`,
    );
  }
  return detected;
}

export async function detectFormat(file: FileHandle, path: string): Promise<ImageFormat | VolumeRefusal> {
  return parseImageFormat(await readHeader(file), path);
}

async function readHeader(file: FileHandle): Promise<Buffer> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  return header.subarray(0, bytesRead);
}

/** Returns the word in a marker file beside an image, or undefined if there is none. */
export async function readMarker(directory: Directory, name: string): Promise<string | undefined> {
  await using note = await directory.open(name, O_RDONLY);
  if (note === undefined) return undefined;
  const { buffer, bytesRead } = await note.read(Buffer.alloc(MAX_MARKER_BYTES), 0, MAX_MARKER_BYTES, 0);
  return buffer.toString('utf8', 0, bytesRead).trim();
}

/** Writes a marker file. Its content is durable when this resolves; Directory.sync makes its name durable. */
export async function writeMarker(directory: Directory, name: string, word: string): Promise<void> {
  await replaceFile(directory, name, Buffer.from(`${word}\n`));
}

/** Returns the recorded format; if there is none and the image is usable, records the detected one. */
async function readOrRecordFormat(
  directory: Directory,
  name: string,
  detected: string,
  isUsable: boolean,
): Promise<string | undefined> {
  const known = await readMarker(directory, name);
  if (known !== undefined) return known;
  if (!isUsable) return undefined;
  await writeMarker(directory, name, detected);
  return detected;
}

/** Replaces the file atomically: after a crash of the process or machine it has either the old or the new content. */
export async function replaceFile(directory: Directory, name: string, content: Buffer): Promise<void> {
  const temporary = `${name}.new`;
  await directory.unlink(temporary);
  {
    await using file = await directory.open(temporary, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
    await file?.writeFile(content);
    await file?.sync();
  }
  await directory.rename(temporary, name);
}

async function supportsDirectIo(directory: Directory, name: string): Promise<boolean> {
  try {
    await using file = await directory.open(name, O_RDONLY | O_DIRECT);
    return file !== undefined;
  } catch (error) {
    if (isErrorWithCode(error, 'EINVAL', 'EOPNOTSUPP')) return false;
    throw error;
  }
}

type ImageFormat = Exclude<ImageHeader, { is: 'refused' }>;

/** Detects the format of an image by its first bytes, or refuses it. */
export function parseImageFormat(header: Buffer, path: string): ImageFormat | VolumeRefusal {
  const found = readImageHeader(header);
  if (found.is !== 'refused') return found;
  if (found.isDamaged === true) return damagedRefusal(path, found.why);
  const text = `Cannot use image "${path}": ${found.why}; expected a raw or a self-contained qcow2 image`;
  return failedRefusal('ImageRefused', text);
}
