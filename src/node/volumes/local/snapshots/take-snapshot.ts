/** Copies the medium of a volume that no guest has open, or its persistent state, also while a guest uses it. */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { LOCAL_PROVISIONER } from '#api/names.ts';
import type { SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { copyFile, type CopyOptions } from '#node/volumes/local/content/copy-image.ts';
import type { Directory } from '#node/volumes/local/mounts/directory.ts';
import { writeMarker } from '#node/volumes/local/content/disk-image.ts';
import {
  refusePendingCopy,
  FORMAT_FILE,
  openOwnDirectory,
  ensureOwnImage,
} from '#node/volumes/local/kinds/persistent-volume.ts';
import { openEmptySnapshot, writeArchive } from '#node/volumes/local/snapshots/snapshot-files.ts';
import { packVolume } from '#node/volumes/local/state/state-archive-volume.ts';
import { DISK_IMAGE, findVolumePlace } from '#node/volumes/local/volume-place.ts';
import { isVolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

interface TakeOptions extends CopyOptions {
  /** Set if the volume contains the persistent state of a VM, with the id of the domain that uses it, if any. */
  readonly state?: { readonly domainId?: string | undefined } | undefined;
}

/** Takes a snapshot; of a disk only while no guest has it open. The snapshot is not complete before it is sealed. */
export async function takeSnapshot(
  volume: PersistentVolume,
  to: SnapshotPlace,
  host: VolumesHost,
  { state, ...options }: TakeOptions,
): Promise<void> {
  const place = findVolumePlace(volume, host);
  if (place.is !== 'own') {
    throw new Error(
      errorText(volume, isVolumeRefusal(place) ? place.message : `it does not belong to ${LOCAL_PROVISIONER}`),
    );
  }
  const pending = await refusePendingCopy(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  if (state !== undefined) return await writeArchive(to, await packVolume(volume, place, state.domainId, host), host);
  await using source = await openOwnDirectory(place);
  // As before a start: creates an empty image if the volume was never used, and checks the recorded format.
  const image = await ensureOwnImage(source, place, host);
  if (image.is !== 'ready') throw new Error(image.message);

  await using directory = await openEmptySnapshot(to, host);
  try {
    await writeMarker(directory, FORMAT_FILE, image.source.format);
    const before = await lastWriteTime(source);
    await copyFile(image.source.path, join(directory.path, DISK_IMAGE), host, options);
    if ((await lastWriteTime(source)) !== before)
      throw new Error(errorText(volume, 'it was written to while it was copied'));
    // If this node was cut off, another node may have started again in a directory of the same name.
    if ((await lastWriteTime(directory)) === undefined)
      throw new Error(errorText(volume, 'the copy was removed meanwhile'));
  } catch (error) {
    // On a full disk, half a copy would take space from everything else.
    await directory.empty();
    throw error;
  }
}

function errorText({ metadata }: PersistentVolume, why: string): string {
  return `Cannot take a snapshot of PersistentVolume "${metadata.name}": ${why}`;
}

/** Returns the time of the last write to the image, which also reveals a guest that ran meanwhile on any node. */
async function lastWriteTime(directory: Directory): Promise<bigint | undefined> {
  await using image = await directory.open(DISK_IMAGE, constants.O_RDONLY);
  const stats = await image?.stat({ bigint: true });
  return stats?.mtimeNs;
}
