/**
 * Fills a volume from a snapshot. A filled volume is always raw, like those that we create empty: snapshots of running
 * guests are qcow2 whatever their disks were, and the format of a disk must not depend on whether its guest ran. The
 * image gets its name last; until then, guests cannot use the volume. It never replaces an existing image: if a node
 * was cut off while it copied, another node may have filled the volume meanwhile. The same applies to the directory or
 * file system that is created from the snapshot of a persistent state.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { LOCAL_PROVISIONER } from '#api/names.ts';
import { parseSnapshotHandle } from '#api/storage/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { copyFile, unpackFile, type CopyOptions } from '#node/volumes/local/content/copy-image.ts';
import { Directory } from '#node/volumes/local/mounts/directory.ts';
import { PRIVATE_FILE, writeMarker } from '#node/volumes/local/content/disk-image.ts';
import {
  refusePendingCopy,
  FORMAT_FILE,
  openOwnDirectory,
  type OwnPlace,
} from '#node/volumes/local/kinds/persistent-volume.ts';
import { useSealedSnapshot, type SealedSnapshot } from '#node/volumes/local/snapshots/snapshot-files.ts';
import { installState, makeStateImage } from '#node/volumes/local/state/state-archive-volume.ts';
import { DISK_IMAGE, snapshotHandleOf, findVolumePlace, VOLUMES_DIR } from '#node/volumes/local/volume-place.ts';
import { isVolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;
/** Limits the part of a node's name in file names. */
const NODE_CHARACTERS = 200;

/** Does nothing if the volume is already filled. Replaces the remains of an earlier attempt. */
export async function fillVolume(volume: PersistentVolume, host: VolumesHost, options: CopyOptions): Promise<void> {
  const { name } = volume.metadata;
  const place = findVolumePlace(volume, host);
  if (place.is !== 'own') {
    const why = isVolumeRefusal(place) ? place.message : `it does not belong to ${LOCAL_PROVISIONER}`;
    throw new Error(`Cannot fill PersistentVolume "${name}": ${why}`);
  }
  const handle = snapshotHandleOf(volume) ?? '';
  const from = parseSnapshotHandle(handle);
  if (from === undefined) {
    throw new Error(
      `Cannot fill PersistentVolume "${name}": ${JSON.stringify(handle)} is not the handle of one of our snapshots`,
    );
  }
  if ((await refusePendingCopy(volume, place)) === undefined) return;

  await using directory = await openOwnDirectory(place);
  await useSealedSnapshot(from, host, async (snapshot) => {
    if (snapshot.format !== 'state' || place.block) await fillImage(directory, snapshot, place, host, options);
    else if (await installState(directory, snapshot.files, { host, replace: false }))
      await syncToRoot(directory, place);
  });
}

async function fillImage(
  directory: Directory,
  snapshot: SealedSnapshot,
  place: OwnPlace,
  host: VolumesHost,
  options: CopyOptions,
): Promise<void> {
  // A separate file for each node, so that no node finishes the copy of another.
  const unfinished = `${DISK_IMAGE}.${host.nodeName.slice(0, NODE_CHARACTERS)}.new`;
  await directory.unlink(unfinished);
  try {
    if (snapshot.format === 'state') await makeStateImage(directory, unfinished, snapshot.files, { place, host });
    else await copySnapshot(directory, unfinished, snapshot, host, options);
    options.signal?.throwIfAborted();
    await finishImage(directory, unfinished, place);
  } finally {
    // On a full disk, half a copy would take space from everything else.
    await directory.unlink(unfinished);
  }
}

async function copySnapshot(
  directory: Directory,
  name: string,
  { path, format }: Exclude<SealedSnapshot, { format: 'state' }>,
  host: VolumesHost,
  options: CopyOptions,
): Promise<void> {
  {
    // Created here, because cp and qemu-img would create a file that every user can read.
    await using _ = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  }
  await (format === 'raw' ? copyFile : unpackFile)(path, join(directory.path, name), host, options);
}

/** Gives the image its size, as ensureImage would, and then its name. */
async function finishImage(directory: Directory, unfinished: string, place: OwnPlace): Promise<void> {
  const { block, bytes } = place;
  {
    await using file = await directory.open(unfinished, O_RDWR);
    const stats = await file?.stat();
    if (file === undefined || stats?.isFile() !== true) {
      throw new Error(`Cannot fill "${join(directory.path, DISK_IMAGE)}": the copy was removed meanwhile`);
    }
    if (stats.size < bytes) await file.truncate(bytes);
    await file.sync();
  }
  if (!block) await writeMarker(directory, FORMAT_FILE, 'raw');
  await directory.link(unfinished, DISK_IMAGE);
  await directory.unlink(unfinished);
  await syncToRoot(directory, place);
}

async function syncToRoot(directory: Directory, place: OwnPlace): Promise<void> {
  await using root = await Directory.open(place.root);
  await using volumes = await root?.child(VOLUMES_DIR);
  for (const one of [directory, volumes, root]) await one?.sync();
}
