/**
 * Reads and replaces the content of a volume of LOCAL_PROVISIONER. The caller makes sure that no guest uses it. New
 * content is written beside the disk and replaces it only when it is complete.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { DiskStreamInterrupted, type DiskHeader } from '#api/storage/disk-stream.ts';
import { findUnsupportedFormat, HEADER_BYTES } from '#api/storage/image-header.ts';
import { LOCAL_PROVISIONER } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { fileSource } from '#lib/disk-image/byte-source.ts';
import { convertedBytes, DamagedImageError, Qcow2Image } from '#lib/disk-image/qcow2-image.ts';
import { bytesText } from '#lib/terminal/progress-text.ts';
import { DiskRefusedError, type DiskContent } from '#node/volumes/volumes-port.ts';
import { unpackFile } from '#node/volumes/local/content/copy-image.ts';
import { Directory } from '#node/volumes/local/mounts/directory.ts';
import { detectFormat, PRIVATE_FILE, writeMarker } from '#node/volumes/local/content/disk-image.ts';
import {
  refusePendingCopy,
  FORMAT_FILE,
  openOwnDirectory,
  ensureOwnImage,
  type OwnPlace,
} from '#node/volumes/local/kinds/persistent-volume.ts';
import { DISK_IMAGE, findVolumePlace, VOLUMES_DIR } from '#node/volumes/local/volume-place.ts';
import { isVolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

/** The unit of `blocks` in the status of a file. */
const BLOCK_BYTES = 512;
const READ_BYTES = 256 * 1024;
const ZEROS = Buffer.alloc(READ_BYTES);
export const UPLOADED = `${DISK_IMAGE}.upload`;
const UNPACKED = `${DISK_IMAGE}.new`;
/**
 * The free space is checked each time this many bytes were written, because guests on a full file system are paused.
 */
const CHECK_STEP_BYTES = 64 * 1024 * 1024;
const MIN_FREE_BYTES = 2 * CHECK_STEP_BYTES;
/** Accounts for the tables of qcow2. */
const QCOW2_OVERHEAD = 1.05;

/** Opens the content for reading. Throws if that is not possible. */
export async function openContent(volume: PersistentVolume, host: VolumesHost): Promise<DiskContent> {
  const place = await findReadyPlace(volume, host);
  await using directory = await openOwnDirectory(place);
  // As before a start: creates an empty image if the volume was never used, and checks the recorded format.
  const image = await ensureOwnImage(directory, place, host);
  if (image.is !== 'ready') throw new Error(image.message);
  const file = await directory.open(DISK_IMAGE, O_RDONLY);
  if (file === undefined)
    throw new Error(`Cannot read "${join(directory.path, DISK_IMAGE)}": it was removed meanwhile`);
  try {
    const { size, blocks, mtimeNs } = await file.stat({ bigint: true });
    const allocatedBytes = Math.min(Number(blocks) * BLOCK_BYTES, Number(size));
    const header = { size: Number(size), format: image.source.format, virtualSize: image.bytes, allocatedBytes };
    return { header, chunks: () => readChunks(file, header.size, mtimeNs), close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* readChunks(file: FileHandle, size: number, writtenAt: bigint): AsyncGenerator<Buffer> {
  for (let at = 0; at < size;) {
    const { buffer, bytesRead } = await file.read(
      Buffer.allocUnsafe(READ_BYTES),
      0,
      Math.min(READ_BYTES, size - at),
      at,
    );
    if (bytesRead === 0) throw new Error('Cannot read the disk: it was truncated meanwhile');
    at += bytesRead;
    yield buffer.subarray(0, bytesRead);
  }
  // The time of modification also detects a guest of another node.
  const { mtimeNs } = await file.stat({ bigint: true });
  if (mtimeNs !== writtenAt) throw new Error('Cannot read the disk: it was written to meanwhile');
}

/** Returns why this cannot become the content of the volume, or undefined if it may be tried. */
function checkHeader({ size, format }: DiskHeader, volumeBytes: number): string | undefined {
  const maxBytes = format === 'raw' ? volumeBytes : Math.ceil(volumeBytes * QCOW2_OVERHEAD) + CHECK_STEP_BYTES;
  return size <= maxBytes ? undefined : `the content has ${size} bytes, and the volume has ${volumeBytes}`;
}

/** Returns the place of the volume. Throws if this cannot become its content. */
export async function findUploadPlace(
  volume: PersistentVolume,
  header: DiskHeader,
  host: VolumesHost,
): Promise<OwnPlace> {
  const place = await findReadyPlace(volume, host);
  const problem = checkHeader(header, place.bytes);
  if (problem !== undefined) throw new Error(`Cannot fill PersistentVolume "${volume.metadata.name}": ${problem}`);
  return place;
}

/**
 * Replaces the content, durably. If it throws, the volume is unchanged. `from` is the offset at which the chunks resume
 * an earlier upload; if it is set, a broken connection leaves the received part for the next attempt.
 */
export async function replaceContent(
  volume: PersistentVolume,
  header: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  host: VolumesHost,
  { signal, from }: { readonly signal: AbortSignal | undefined; readonly from?: number | undefined },
): Promise<void> {
  const place = await findUploadPlace(volume, header, host);
  await using directory = await openOwnDirectory(place);
  // Left by an earlier attempt.
  for (const name of from ? [UNPACKED] : [UPLOADED, UNPACKED]) await directory.unlink(name);
  let isBroken = false;
  try {
    await receiveUpload(directory, header, chunks, host, { signal, from: from ?? 0 });
    const ready = header.format === 'raw' ? UPLOADED : await unpackUpload(directory, place, host, signal);
    signal?.throwIfAborted();
    await installImage(directory, ready, place);
  } catch (error) {
    isBroken = from !== undefined && (error instanceof DiskStreamInterrupted || signal?.aborted === true);
    throw error;
  } finally {
    // On a full disk, half a copy would take space from everything else.
    for (const name of isBroken ? [UNPACKED] : [UPLOADED, UNPACKED]) await directory.unlink(name);
  }
}

async function receiveUpload(
  directory: Directory,
  { size, format }: DiskHeader,
  chunks: AsyncIterable<Buffer>,
  host: VolumesHost,
  { signal, from: startAt }: { readonly signal: AbortSignal | undefined; readonly from: number },
): Promise<void> {
  await using file = startAt > 0 ? await reopenUpload(directory, startAt) : await createFile(directory, UPLOADED);
  let at = startAt;
  let bytesUntilCheck = 0;
  // The size must be that of the received part, even if it ends with a hole.
  await using _ = { [Symbol.asyncDispose]: async () => await file.truncate(at) };
  for await (const chunk of chunks) {
    signal?.throwIfAborted();
    for (let from = 0; from < chunk.length; from += READ_BYTES) {
      const piece = chunk.subarray(from, from + READ_BYTES);
      // Zeros are skipped, so that the file stays sparse.
      if (!piece.equals(ZEROS.subarray(0, piece.length))) {
        if (bytesUntilCheck <= 0) {
          await checkRoom(directory, MIN_FREE_BYTES, host);
          bytesUntilCheck = CHECK_STEP_BYTES;
        }
        bytesUntilCheck -= piece.length;
        await writeAll(file, piece, at);
      }
      at += piece.length;
    }
  }
  if (at !== size) throw new Error(`Cannot fill "${directory.path}": received ${at} bytes; expected ${size}`);
  await file.truncate(size);
  await refuseForeignFormat(file);
  const detected = await detectFormat(file, 'the upload');
  if (isVolumeRefusal(detected)) throw new Error(detected.message);
  if (detected.is !== format) {
    throw new Error(`Cannot fill "${directory.path}": received a ${detected.is} image; expected ${format}`);
  }
}

/** Refuses other image formats, which a guest could not use. */
async function refuseForeignFormat(file: FileHandle): Promise<void> {
  const header = Buffer.alloc(HEADER_BYTES);
  const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
  const foreign = findUnsupportedFormat(header.subarray(0, bytesRead));
  if (foreign === undefined) return;
  throw new Error(`Cannot use the upload: it is in the format ${foreign}; expected raw or qcow2`);
}

async function unpackUpload(
  directory: Directory,
  { bytes }: OwnPlace,
  host: VolumesHost,
  signal: AbortSignal | undefined,
): Promise<string> {
  {
    await using file = await directory.open(UPLOADED, O_RDONLY);
    const detected = file && (await detectFormat(file, 'the upload'));
    if (file === undefined || detected?.is !== 'qcow2')
      throw new Error(`Cannot fill "${directory.path}": the upload was removed meanwhile`);
    if (detected.virtualBytes > bytes) {
      throw new Error(
        `Cannot fill "${directory.path}": the disk has ${detected.virtualBytes} bytes; expected at most ${bytes}`,
      );
    }
    await checkRoom(directory, (await measureConverted(file)) + MIN_FREE_BYTES, host);
    // Created here, because qemu-img would create a file that every user can read.
    await using _ = await createFile(directory, UNPACKED);
  }
  await unpackFile(join(directory.path, UPLOADED), join(directory.path, UNPACKED), host, { signal });
  await directory.unlink(UPLOADED);
  return UNPACKED;
}

/** Returns the space that the disk needs as raw. Throws if the image lacks tables or data: qemu-img reads zeros there. */
async function measureConverted(file: FileHandle): Promise<number> {
  const { size, blocks } = await file.stat();
  try {
    const image = await Qcow2Image.open(fileSource(file, size));
    return image === undefined ? 0 : convertedBytes(await image.check(), blocks * BLOCK_BYTES);
  } catch (cause) {
    if (!(cause instanceof DamagedImageError)) throw cause;
    throw new Error(`Cannot use the upload: ${cause.message}`, { cause });
  }
}

/** Gives the file its size and name, as the next start would. It is raw, like all volumes that we create. */
export async function installImage(directory: Directory, name: string, place: OwnPlace): Promise<void> {
  const { block, bytes } = place;
  {
    await using file = await directory.open(name, O_RDWR);
    const stats = await file?.stat();
    if (file === undefined || stats?.isFile() !== true)
      throw new Error(`Cannot fill "${directory.path}": the image was removed meanwhile`);
    if (stats.size < bytes) await file.truncate(bytes);
    await file.sync();
  }
  // Removed first, because a wrong format file prevents guests from starting.
  await directory.unlink(FORMAT_FILE);
  await directory.rename(name, DISK_IMAGE);
  if (!block) await writeMarker(directory, FORMAT_FILE, 'raw');
  await using root = await Directory.open(place.root);
  await using volumes = await root?.child(VOLUMES_DIR);
  for (const one of [directory, volumes, root]) await one?.sync();
}

export async function findReadyPlace(volume: PersistentVolume, host: VolumesHost): Promise<OwnPlace> {
  const place = findVolumePlace(volume, host);
  if (place.is !== 'own') {
    const why = isVolumeRefusal(place) ? place.message : `it does not belong to ${LOCAL_PROVISIONER}`;
    throw new Error(`Cannot open PersistentVolume "${volume.metadata.name}": ${why}`);
  }
  const pending = await refusePendingCopy(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  return place;
}

async function reopenUpload(directory: Directory, bytes: number): Promise<FileHandle> {
  const file = await directory.open(UPLOADED, O_RDWR);
  const stats = await file?.stat();
  if (file !== undefined && stats?.isFile() === true && stats.size >= bytes) return file;
  await file?.close();
  throw new Error(`Cannot resume "${join(directory.path, UPLOADED)}": it was removed meanwhile`);
}

async function createFile(directory: Directory, name: string): Promise<FileHandle> {
  const file = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (file === undefined)
    throw new Error(`Cannot create "${join(directory.path, name)}": its directory was removed meanwhile`);
  return file;
}

/**
 * Throws if the node has no room for an upload of which it has `storedBytes` already. Until a qcow2 image is converted, it
 * needs room beside the disk; a client that does not know the size of the data in it reserves the size of the file.
 */
export async function checkRoomForUpload(
  directory: Directory,
  { dataBytes, format, convertedBytes: rawBytes = dataBytes }: DiskHeader,
  host: VolumesHost,
  storedBytes: number,
): Promise<void> {
  if (dataBytes === undefined) return;
  const neededBytes = Math.max(0, dataBytes - storedBytes) + (format === 'qcow2' ? (rawBytes ?? 0) : 0);
  await checkRoom(directory, neededBytes + MIN_FREE_BYTES, host);
}

async function checkRoom(
  { path }: Directory,
  neededBytes: number,
  { nodeName, freeBytes }: VolumesHost,
): Promise<void> {
  const leftBytes = await freeBytes(path);
  if (leftBytes >= neededBytes) return;
  const state = `node "${nodeName}" has ${bytesText(leftBytes)} of free space there and needs ${bytesText(neededBytes)}`;
  throw new DiskRefusedError(
    `Cannot fill "${path}": ${state}; free space on the node, or use a volume of another node or storage class`,
    'NoRoom',
  );
}

async function writeAll(file: FileHandle, piece: Buffer, at: number): Promise<void> {
  for (let written = 0; written < piece.length;) {
    const { bytesWritten } = await file.write(piece, written, piece.length - written, at + written);
    written += bytesWritten;
  }
}
