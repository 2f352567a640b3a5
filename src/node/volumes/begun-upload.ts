/** What an upload whose connection broke has left of an image, and whether one may come at all. */
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import type { Begun, DiskHeader } from '#api/disk-stream.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { DiskRefused } from '#node/volumes-port.ts';
import { placeFor, UPLOADED } from './disk-content.ts';
import type { Directory } from './directory.ts';
import { ownDirectory } from './persistent-volume.ts';
import { DISK_IMAGE } from './volume-place.ts';
import type { VolumesHost } from './volumes-host.ts';

const { O_RDONLY } = constants;
const READ_BYTES = 256 * 1024;

/** Throws where the volume cannot have this content. */
export async function begunUpload(volume: PersistentVolume, header: DiskHeader, host: VolumesHost): Promise<Begun> {
  const place = await placeFor(volume, header, host);
  await using directory = await ownDirectory(place);
  if (header.replace !== true) await checkEmpty(directory, volume);
  const none = { offset: 0, hash: createHash('sha256') };
  await using file = await directory.open(UPLOADED, O_RDONLY);
  const stats = await file?.stat();
  if (file === undefined || stats?.isFile() !== true || stats.size === 0 || stats.size > header.size) return none;
  const hash = createHash('sha256');
  const pieces = file.createReadStream({ autoClose: false, start: 0, end: stats.size - 1, highWaterMark: READ_BYTES });
  for await (const piece of pieces as AsyncIterable<Buffer>) hash.update(piece);
  return { offset: stats.size, hash };
}

/** A disk that nobody has written to has no blocks: it may be made anew without a loss. */
async function checkEmpty(directory: Directory, { metadata }: PersistentVolume): Promise<void> {
  await using image = await directory.open(DISK_IMAGE, O_RDONLY);
  const stats = await image?.stat();
  if (stats === undefined || stats.blocks === 0) return;
  throw new DiskRefused(`PersistentVolume "${metadata.name}" has content already, which would be lost`);
}
