/** A copy of the medium of a volume that nobody has open, or of the state that it holds, which a guest may have. */
import { constants } from 'node:fs';
import { join } from 'node:path';
import type { SnapshotPlace } from '#api/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { copyFile, type CopyOptions } from './copy-image.ts';
import type { Directory } from './directory.ts';
import { writeNote } from './disk-image.ts';
import { copyPending, FORMAT_FILE, ownDirectory, ownImage } from './persistent-volume.ts';
import { emptySnapshot, writeArchive } from './snapshot-files.ts';
import { packVolume } from './state-archive-volume.ts';
import { DISK_IMAGE, volumePlace } from './volume-place.ts';
import { isRefusal, type VolumesHost } from './volumes-host.ts';

export interface TakeOptions extends CopyOptions {
  /** It holds the state of a VM; with the id of the domain that has it, if one has. */
  readonly state?: { readonly domainId?: string | undefined } | undefined;
}

/** Of a disk only while no guest has it open. Not complete before it is sealed. */
export async function takeSnapshot(
  volume: PersistentVolume,
  to: SnapshotPlace,
  host: VolumesHost,
  { state, ...options }: TakeOptions,
): Promise<void> {
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    throw new Error(cannot(volume, isRefusal(place) ? place.message : 'it is not one of ours'));
  }
  const pending = await copyPending(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  if (state !== undefined) return await writeArchive(to, await packVolume(volume, place, state.domainId, host), host);
  await using source = await ownDirectory(place);
  // As before a start: found, or made empty where nobody has used it yet, and held to the format that it had.
  const image = await ownImage(source, place, host);
  if (image.is !== 'ready') throw new Error(image.message);

  await using directory = await emptySnapshot(to, host);
  try {
    await writeNote(directory, FORMAT_FILE, image.source.format);
    const before = await lastWrite(source);
    await copyFile(image.source.path, join(directory.path, DISK_IMAGE), host, options);
    if ((await lastWrite(source)) !== before) throw new Error(cannot(volume, 'it was written to while it was copied'));
    // Where this node was cut off, another may have begun again, in a directory of the same name.
    if ((await lastWrite(directory)) === undefined) throw new Error(cannot(volume, 'the copy went away'));
  } catch (error) {
    // Where the disk is full, half a copy would keep it so for all others.
    await directory.empty();
    throw error;
  }
}

function cannot({ metadata }: PersistentVolume, why: string): string {
  return `Cannot take a snapshot of PersistentVolume "${metadata.name}": ${why}`;
}

/** Of the image in it, whoever it was, on this node or another: a guest that has come and gone leaves no other trace. */
async function lastWrite(directory: Directory): Promise<bigint | undefined> {
  await using image = await directory.open(DISK_IMAGE, constants.O_RDONLY);
  const stats = await image?.stat({ bigint: true });
  return stats?.mtimeNs;
}
