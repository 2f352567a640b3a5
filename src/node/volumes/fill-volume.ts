/**
 * Fills a volume from a snapshot. A filled volume is always raw, as the ones that we make empty are: snapshots of running
 * guests are qcow2 whatever their disks were, and how a disk is kept must not depend on whether its guest ran. The image
 * gets its name last; until then, the volume is not there for guests.
 */
import { constants } from 'node:fs';
import { join } from 'node:path';
import { parseSnapshotHandle, type SnapshotPlace } from '#api/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { Directory } from './directory.ts';
import { giveTo, writeNote } from './disk-image.ts';
import { copyPending, FORMAT_FILE, ownDirectory, type OwnPlace } from './persistent-volume.ts';
import { withSealed } from './snapshot-files.ts';
import { COPY_TIMEOUT_MS, copyFile, type CopyOptions } from './take-snapshot.ts';
import { DISK_IMAGE, snapshotHandleOf, volumePlace, VOLUMES_DIR } from './volume-place.ts';
import { isRefusal, type VolumesHost } from './volumes-host.ts';

const { O_RDWR } = constants;
const UNFINISHED = `${DISK_IMAGE}.new`;

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
  await directory.unlink(UNFINISHED);
  await copyOut(from, join(directory.path, UNFINISHED), host, options);
  options.signal?.throwIfAborted();
  await finish(directory, place, host);
}

function copyOut(from: SnapshotPlace, to: string, host: VolumesHost, options: CopyOptions): Promise<void> {
  return withSealed(from, host, async ({ path, format }) => {
    if (format === 'raw') return await copyFile(path, to, host.run, options);
    const args = ['convert', '-q', '-f', format, '-O', 'raw', path, to];
    await host.run('qemu-img', args, { signal: options.signal, timeoutMs: COPY_TIMEOUT_MS });
  });
}

/** Owner and size as ensureImage gives them, so that the first guest finds nothing left to do. */
async function finish(directory: Directory, place: OwnPlace, host: VolumesHost): Promise<void> {
  const { block, bytes } = place;
  {
    await using file = await directory.open(UNFINISHED, O_RDWR);
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
  await directory.rename(UNFINISHED, DISK_IMAGE);
  await using root = await Directory.open(place.root);
  await using volumes = await root?.child(VOLUMES_DIR);
  for (const one of [directory, volumes, root]) await one?.sync();
}
