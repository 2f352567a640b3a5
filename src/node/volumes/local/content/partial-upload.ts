/** Finds the part of an image that an interrupted upload has left, so that the next upload can resume. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { ResumePoint, DiskHeader } from '#api/storage/disk-stream.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { DiskRefusedError } from '#node/volumes/volumes-port.ts';
import { checkRoomForUpload, findUploadPlace, UPLOADED } from '#node/volumes/local/content/disk-content.ts';
import type { Directory } from '#node/volumes/local/mounts/directory.ts';
import { openOwnDirectory } from '#node/volumes/local/kinds/persistent-volume.ts';
import { DISK_IMAGE } from '#node/volumes/local/volume-place.ts';
import type { VolumesHost } from '#node/volumes/local/volumes-host.ts';

const { O_RDONLY } = constants;
const READ_BYTES = 256 * 1024;
const BLOCK_BYTES = 512;

/** Returns the offset to resume from and the hash so far. Throws if the volume cannot have this content. */
export async function findPartialUpload(
  volume: PersistentVolume,
  header: DiskHeader,
  host: VolumesHost,
): Promise<ResumePoint> {
  const place = await findUploadPlace(volume, header, host);
  await using directory = await openOwnDirectory(place);
  if (header.replace !== true) await checkEmpty(directory, volume);
  const none = { offset: 0, hash: createHash('sha256') };
  await using file = await directory.open(UPLOADED, O_RDONLY);
  const stats = await file?.stat();
  await checkRoomForUpload(directory, header, host, stats?.isFile() === true ? stats.blocks * BLOCK_BYTES : 0);
  if (file === undefined || stats?.isFile() !== true || stats.size === 0 || stats.size > header.size) return none;
  const hash = createHash('sha256');
  const pieces = file.createReadStream({ autoClose: false, start: 0, end: stats.size - 1, highWaterMark: READ_BYTES });
  for await (const piece of pieces as AsyncIterable<Buffer>) hash.update(piece);
  return { offset: stats.size, hash };
}

/** Refuses to replace a disk with data. A disk that was never written has no allocated blocks. */
async function checkEmpty(directory: Directory, { metadata }: PersistentVolume): Promise<void> {
  await using image = await directory.open(DISK_IMAGE, O_RDONLY);
  const stats = await image?.stat();
  if (stats === undefined || stats.blocks === 0) return;
  const message = `PersistentVolume "${metadata.name}" has content already, which would be lost`;
  throw new DiskRefusedError(message, 'HasContent');
}
