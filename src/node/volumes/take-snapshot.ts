/** A copy of the medium of a volume that nobody has open. Where the file system can, the two share their blocks. */
import { join } from 'node:path';
import type { SnapshotPlace } from '#api/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { writeNote } from './disk-image.ts';
import { copyPending, FORMAT_FILE, ownDirectory, ownImage } from './persistent-volume.ts';
import type { RunCommand } from './run-command.ts';
import { emptySnapshot } from './snapshot-files.ts';
import { DISK_IMAGE, volumePlace } from './volume-place.ts';
import { isRefusal, type VolumesHost } from './volumes-host.ts';

/** Some terabytes on a slow disk. */
export const COPY_TIMEOUT_MS = 12 * 3600 * 1000;

export interface CopyOptions {
  readonly signal: AbortSignal | undefined;
}

/** Only while no guest has it open. Not complete before it is sealed. */
export async function takeSnapshot(
  volume: PersistentVolume,
  to: SnapshotPlace,
  host: VolumesHost,
  options: CopyOptions,
): Promise<void> {
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    const why = isRefusal(place) ? place.message : 'it is not one of ours';
    throw new Error(`Cannot take a snapshot of PersistentVolume "${volume.metadata.name}": ${why}`);
  }
  const pending = await copyPending(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  await using source = await ownDirectory(place);
  // As before a start: found, or made empty where nobody has used it yet, and held to the format that it had.
  const image = await ownImage(source, place, host);
  if (image.is !== 'ready') throw new Error(image.message);

  await using directory = await emptySnapshot(to, host);
  await writeNote(directory, FORMAT_FILE, image.source.format);
  await copyFile(image.source.path, join(directory.path, DISK_IMAGE), host.run, options);
}

/** Holes stay holes. Both directories are ours alone, so that nobody else puts links into them; cp would copy a link as one. */
export async function copyFile(from: string, to: string, run: RunCommand, { signal }: CopyOptions): Promise<void> {
  const args = ['--reflink=auto', '--sparse=always', '--no-dereference', '--', from, to];
  await run('cp', args, { signal, timeoutMs: COPY_TIMEOUT_MS });
}
