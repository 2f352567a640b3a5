/**
 * The content of a volume of ours, out and in. Only while no guest has it: whoever asks has seen to that. What comes in
 * is written beside the disk and takes its place when all of it is there; until then the disk is as it was.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskStreamBroken, type DiskHeader } from '#api/disk-stream.ts';
import { foreignFormat, HEADER_BYTES } from '#api/image-header.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { DiskContent } from '#node/volumes-port.ts';
import { unpackFile } from './copy-image.ts';
import { Directory } from './directory.ts';
import { giveTo, looksLike, PRIVATE_FILE, writeNote } from './disk-image.ts';
import { copyPending, FORMAT_FILE, ownDirectory, ownImage, type OwnPlace } from './persistent-volume.ts';
import { DISK_IMAGE, volumePlace, VOLUMES_DIR } from './volume-place.ts';
import { isRefusal, type VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

const READ_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(READ_BYTES);
export const UPLOADED = `${DISK_IMAGE}.upload`;
const UNPACKED = `${DISK_IMAGE}.new`;
/** Of each so many bytes it is asked whether the file system has room: guests on a full one are paused. */
const ROOM_STEP_BYTES = 64 * 1024 * 1024;
const ROOM_BYTES = 2 * ROOM_STEP_BYTES;
/** qcow2 has tables besides the data. */
const QCOW2_OVERHEAD = 1.05;

/** Throws where it cannot be opened. */
export async function openContent(volume: PersistentVolume, host: VolumesHost): Promise<DiskContent> {
  const place = await readyPlace(volume, host);
  await using directory = await ownDirectory(place);
  // As before a start: found, or made empty where nobody has used it yet, and held to the format that it had.
  const image = await ownImage(directory, place, host);
  if (image.is !== 'ready') throw new Error(image.message);
  const file = await directory.open(DISK_IMAGE, O_RDONLY);
  if (file === undefined) throw new Error(`Cannot read "${join(directory.path, DISK_IMAGE)}": it went away`);
  try {
    const { size, mtimeNs } = await file.stat({ bigint: true });
    const header = { size: Number(size), format: image.source.format, virtualSize: image.bytes };
    return { header, chunks: () => pieces(file, header.size, mtimeNs), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* pieces(file: FileHandle, size: number, writtenAt: bigint): AsyncGenerator<Buffer> {
  for (let at = 0; at < size;) {
    const { buffer, bytesRead } = await file.read(
      Buffer.allocUnsafe(READ_BYTES),
      0,
      Math.min(READ_BYTES, size - at),
      at,
    );
    if (bytesRead === 0) throw new Error('the disk was cut off while it was read');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  // A guest of another node leaves no other trace.
  const { mtimeNs } = await file.stat({ bigint: true });
  if (mtimeNs !== writtenAt) throw new Error('the disk was written to while it was read');
}

/** Why this cannot become the content of the volume; undefined where it may be tried. */
export function headerFault({ size, format }: DiskHeader, volumeBytes: number): string | undefined {
  const most = format === 'raw' ? volumeBytes : Math.ceil(volumeBytes * QCOW2_OVERHEAD) + ROOM_STEP_BYTES;
  return size <= most ? undefined : `it has ${size} bytes, and the volume has ${volumeBytes}`;
}

/** Throws where this cannot become the content of the volume. */
export async function placeFor(volume: PersistentVolume, header: DiskHeader, host: VolumesHost): Promise<OwnPlace> {
  const place = await readyPlace(volume, host);
  const fault = headerFault(header, place.bytes);
  if (fault !== undefined) throw new Error(`Cannot fill PersistentVolume "${volume.metadata.name}": ${fault}`);
  return place;
}

/**
 * The volume has the content when it resolves, on disk; where it throws, it is as before. `from` is where the chunks go on
 * with what an earlier try has left; where it is given, what came before the connection broke is left for the next.
 */
export async function replaceContent(
  volume: PersistentVolume,
  header: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  host: VolumesHost,
  { signal, from }: { readonly signal: AbortSignal | undefined; readonly from?: number | undefined },
): Promise<void> {
  const place = await placeFor(volume, header, host);
  await using directory = await ownDirectory(place);
  // What an earlier try has left.
  for (const name of from ? [UNPACKED] : [UPLOADED, UNPACKED]) await directory.unlink(name);
  let isBroken = false;
  try {
    await receive(directory, header, chunks, host, { signal, from: from ?? 0 });
    const ready = header.format === 'raw' ? UPLOADED : await unpack(directory, place, host, signal);
    signal?.throwIfAborted();
    await install(directory, ready, place, host);
  } catch (error) {
    isBroken = from !== undefined && (error instanceof DiskStreamBroken || signal?.aborted === true);
    throw error;
  } finally {
    // Where the disk is full, half a copy would keep it so for all others.
    for (const name of isBroken ? [UNPACKED] : [UPLOADED, UNPACKED]) await directory.unlink(name);
  }
}

async function receive(
  directory: Directory,
  { size, format }: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  { freeBytes }: VolumesHost,
  { signal, from: begin }: { readonly signal: AbortSignal | undefined; readonly from: number },
): Promise<void> {
  await using file = begin > 0 ? await reopen(directory, begin) : await make(directory, UPLOADED);
  let at = begin;
  let untilAsked = 0;
  // As long as what has come, whenever it breaks off: a hole at the end has come, too.
  await using _ = { [Symbol.asyncDispose]: async () => await file.truncate(at) };
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    for (let from = 0; from < chunk.length; from += READ_BYTES) {
      const piece = chunk.subarray(from, from + READ_BYTES);
      // Holes stay holes.
      if (!piece.equals(ZEROS.subarray(0, piece.length))) {
        if (untilAsked <= 0) {
          await checkRoom(directory, freeBytes);
          untilAsked = ROOM_STEP_BYTES;
        }
        untilAsked -= piece.length;
        await writeAll(file, piece, at);
      }
      at += piece.length;
    }
  }
  if (at !== size) throw new Error(`Cannot fill "${directory.path}": ${at} bytes came; expected ${size}`);
  await file.truncate(size);
  await checkForeign(file);
  const looks = await looksLike(file, 'the upload');
  if (isRefusal(looks)) throw new Error(looks.message);
  if (looks.is !== format) {
    throw new Error(`Cannot fill "${directory.path}": what came is a ${looks.is} image; expected ${format}`);
  }
}

/** A guest would not know what to do with it. */
async function checkForeign(file: FileHandle): Promise<void> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  const foreign = foreignFormat(header.subarray(0, bytesRead));
  if (foreign === undefined) return;
  throw new Error(`Cannot use the upload: it is in the format ${foreign}; expected raw or qcow2`);
}

async function unpack(
  directory: Directory,
  { bytes }: OwnPlace,
  host: VolumesHost,
  signal: AbortSignal | undefined,
): Promise<string> {
  {
    await using file = await directory.open(UPLOADED, O_RDONLY);
    const looks = file && (await looksLike(file, 'the upload'));
    if (looks?.is !== 'qcow2') throw new Error(`Cannot fill "${directory.path}": the upload went away`);
    if (looks.virtualBytes > bytes) {
      throw new Error(
        `Cannot fill "${directory.path}": the disk has ${looks.virtualBytes} bytes; expected ${bytes} or less`,
      );
    }
    // By us: what programs make is for everybody to read.
    await using _ = await make(directory, UNPACKED);
  }
  await unpackFile(join(directory.path, UPLOADED), join(directory.path, UNPACKED), host, { signal });
  await directory.unlink(UPLOADED);
  return UNPACKED;
}

/** Owner and size as the next start would make them. It is raw whatever came, as all volumes that we make are. */
export async function install(directory: Directory, name: string, place: OwnPlace, host: VolumesHost): Promise<void> {
  const { block, bytes } = place;
  {
    await using file = await directory.open(name, O_RDWR);
    const stats = await file?.stat();
    if (file === undefined || stats?.isFile() !== true)
      throw new Error(`Cannot fill "${directory.path}": it went away`);
    if (stats.size < bytes) await file.truncate(bytes);
    if (!block) await giveTo(file, host.guestUser);
    await file.sync();
  }
  // First: a note that does not fit its image keeps guests from starting.
  await directory.unlink(FORMAT_FILE);
  await directory.rename(name, DISK_IMAGE);
  if (!block) await writeNote(directory, FORMAT_FILE, 'raw');
  await using root = await Directory.open(place.root);
  await using volumes = await root?.child(VOLUMES_DIR);
  for (const one of [directory, volumes, root]) await one?.sync();
}

export async function readyPlace(volume: PersistentVolume, host: VolumesHost): Promise<OwnPlace> {
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    const why = isRefusal(place) ? place.message : 'it is not one of ours';
    throw new Error(`Cannot open PersistentVolume "${volume.metadata.name}": ${why}`);
  }
  const pending = await copyPending(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  return place;
}

async function reopen(directory: Directory, bytes: number): Promise<FileHandle> {
  const file = await directory.open(UPLOADED, O_RDWR);
  const stats = await file?.stat();
  if (file !== undefined && stats?.isFile() === true && stats.size >= bytes) return file;
  await file?.close();
  throw new Error(`Cannot go on with "${join(directory.path, UPLOADED)}": it went away`);
}

async function make(directory: Directory, name: string): Promise<FileHandle> {
  const file = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (file === undefined) throw new Error(`Cannot make "${join(directory.path, name)}": its directory went away`);
  return file;
}

async function checkRoom({ path }: Directory, freeBytes: VolumesHost['freeBytes']): Promise<void> {
  const left = await freeBytes(path);
  if (left >= ROOM_BYTES) return;
  throw new Error(`Cannot fill "${path}": the file system has ${left} bytes left; expected ${ROOM_BYTES} or more`);
}

async function writeAll(file: FileHandle, piece: Buffer, at: number): Promise<void> {
  for (let written = 0; written < piece.length;) {
    const { bytesWritten } = await file.write(piece, written, piece.length - written, at + written);
    written += bytesWritten;
  }
}
