/**
 * Fills a volume from a snapshot. A filled volume is always raw, as the ones that we make empty are: snapshots of running
 * guests are qcow2 whatever their disks were, and how a disk is kept must not depend on whether its guest ran. The image
 * gets its name last; until then, the volume is not there for guests. It never takes the name from another: a node that
 * was cut off while it copied may be followed by one that has filled the volume long ago. The same holds for the
 * directory, or the file system, that is made of the snapshot of a state.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { parseSnapshotHandle } from '#api/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { copyFile, unpackFile, type CopyOptions } from './copy-image.ts';
import { Directory } from './directory.ts';
import { giveTo, PRIVATE_FILE, writeNote } from './disk-image.ts';
import { copyPending, FORMAT_FILE, ownDirectory, type OwnPlace } from './persistent-volume.ts';
import { withSealed, type SealedSnapshot } from './snapshot-files.ts';
import { installState, makeStateImage } from './state-archive-volume.ts';
import { DISK_IMAGE, snapshotHandleOf, volumePlace, VOLUMES_DIR } from './volume-place.ts';
import { isRefusal, type VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDWR } = constants;
/** Of the name of a node: what is made of it is a file name, too. */
const NODE_CHARACTERS = 200;

/** Fine where it is filled already; what an earlier try left is made anew. */
export async function fillVolume(volume: PersistentVolume, host: VolumesHost, options: CopyOptions): Promise<void> {
  const { name } = volume.metadata;
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    const why = isRefusal(place) ? place.message : 'it is not one of ours';
    throw new Error(`Cannot fill PersistentVolume "${name}": ${why}`);
  }
  const handle = snapshotHandleOf(volume) ?? '';
  const from = parseSnapshotHandle(handle);
  if (from === undefined) {
    throw new Error(`Cannot fill PersistentVolume "${name}": ${JSON.stringify(handle)} is no snapshot of ours`);
  }
  if ((await copyPending(volume, place)) === undefined) return;

  await using directory = await ownDirectory(place);
  await withSealed(from, host, async (snapshot) => {
    if (snapshot.format !== 'state' || place.block) await fillImage(directory, snapshot, place, host, options);
    else if (await installState(directory, snapshot.files, { host, replace: false })) await syncAbove(directory, place);
  });
}

async function fillImage(
  directory: Directory,
  snapshot: SealedSnapshot,
  place: OwnPlace,
  host: VolumesHost,
  options: CopyOptions,
): Promise<void> {
  // Each node its own, so that nobody finishes what another has begun.
  const unfinished = `${DISK_IMAGE}.${host.nodeName.slice(0, NODE_CHARACTERS)}.new`;
  await directory.unlink(unfinished);
  try {
    if (snapshot.format === 'state') await makeStateImage(directory, unfinished, snapshot.files, { place, host });
    else await copyOut(directory, unfinished, snapshot, host, options);
    options.signal?.throwIfAborted();
    await finish(directory, unfinished, place, host);
  } finally {
    // Where the disk is full, half a copy would keep it so for all others.
    await directory.unlink(unfinished);
  }
}

async function copyOut(
  directory: Directory,
  name: string,
  { path, format }: Exclude<SealedSnapshot, { format: 'state' }>,
  host: VolumesHost,
  options: CopyOptions,
): Promise<void> {
  {
    // By us: what programs make is for everybody to read.
    await using _ = await directory.open(name, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  }
  await (format === 'raw' ? copyFile : unpackFile)(path, join(directory.path, name), host, options);
}

/** Owner and size as ensureImage gives them, so that the first guest finds nothing left to do. */
async function finish(directory: Directory, unfinished: string, place: OwnPlace, host: VolumesHost): Promise<void> {
  const { block, bytes } = place;
  {
    await using file = await directory.open(unfinished, O_RDWR);
    const stats = await file?.stat();
    if (file === undefined || stats?.isFile() !== true) {
      throw new Error(`Cannot fill "${join(directory.path, DISK_IMAGE)}": the copy went away`);
    }
    if (stats.size < bytes) await file.truncate(bytes);
    // Of a block volume, only the loop device is given away.
    if (!block) await giveTo(file, host.guestUser);
    await file.sync();
  }
  if (!block) await writeNote(directory, FORMAT_FILE, 'raw');
  await directory.link(unfinished, DISK_IMAGE);
  await directory.unlink(unfinished);
  await syncAbove(directory, place);
}

async function syncAbove(directory: Directory, place: OwnPlace): Promise<void> {
  await using root = await Directory.open(place.root);
  await using volumes = await root?.child(VOLUMES_DIR);
  for (const one of [directory, volumes, root]) await one?.sync();
}
