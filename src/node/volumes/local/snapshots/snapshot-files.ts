/**
 * The files of a snapshot of a volume: `<root>/snapshots/<id>/`, on this node or in the directory that all nodes share.
 *
 *   disk.img       the copy
 *   disk.format    raw or qcow2, as recorded when the copy was made; never detected, because a guest writes the bytes.
 *                  `state` for a copy of the persistent state of a VM
 *   state.archive  the copy of a persistent state, instead of an image (state-archive.ts)
 *   sealed         the size in bytes; written last, so that its presence means that the copy is complete and durable
 *
 * A copy belongs to the guest user only while the hypervisor writes it, and to the agent afterwards.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/storage/snapshot-state.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';
import { Directory } from '#node/volumes/local/mounts/directory.ts';
import {
  takeBack,
  detectFormat,
  PRIVATE_FILE,
  readMarker,
  replaceFile,
  writeMarker,
} from '#node/volumes/local/content/disk-image.ts';
import { FORMAT_FILE, TRAVERSE_ONLY } from '#node/volumes/local/kinds/persistent-volume.ts';
import { parseArchive, type StateFile } from '#node/volumes/local/state/state-archive.ts';
import { DISK_IMAGE } from '#node/volumes/local/volume-place.ts';
import { isVolumeRefusal, type VolumesHost } from '#node/volumes/local/volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

const SNAPSHOTS_DIR = 'snapshots';
const SEAL_FILE = 'sealed';
const ARCHIVE_FILE = 'state.archive';
const STATE_FORMAT = 'state';

export type SealedSnapshot =
  | { readonly format: 'raw' | 'qcow2'; readonly path: string }
  | { readonly format: typeof STATE_FORMAT; readonly files: readonly StateFile[] };

/** Creates an empty file that the hypervisor can write as qcow2, and returns its path. */
export async function makeSnapshotFile(place: SnapshotPlace, host: VolumesHost): Promise<string> {
  await using directory = await openEmptySnapshot(place, host);
  await writeMarker(directory, FORMAT_FILE, 'qcow2');
  await using _ = await directory.open(DISK_IMAGE, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  return join(directory.path, DISK_IMAGE);
}

/** Writes the archive of a persistent state, durably. The snapshot is not complete before it is sealed. */
export async function writeArchive(place: SnapshotPlace, archive: Buffer, host: VolumesHost): Promise<void> {
  await using directory = await openEmptySnapshot(place, host);
  await writeMarker(directory, FORMAT_FILE, STATE_FORMAT);
  await replaceFile(directory, ARCHIVE_FILE, archive);
  await directory.sync();
}

/** Reports whether the archive exists. It gets its name when it is complete. */
export function hasArchive(place: SnapshotPlace, host: VolumesHost): Promise<boolean> {
  return withSnapshot(place, host, async ({ directory }) => {
    await using archive = await directory?.open(ARCHIVE_FILE, O_RDONLY);
    return archive !== undefined;
  });
}

/** Opens the directory of the snapshot after removing everything in it. */
export async function openEmptySnapshot(place: SnapshotPlace, host: VolumesHost): Promise<Directory> {
  await removeSnapshot(place, host);
  await using root = await Directory.open(snapshotRoot(place, host));
  if (root === undefined) throw new Error(`Cannot use snapshots: "${snapshotRoot(place, host)}" does not exist`);
  await using snapshots = await root.makeChild(SNAPSHOTS_DIR, TRAVERSE_ONLY);
  return await snapshots.makeChild(place.id, TRAVERSE_ONLY);
}

/** Seals the snapshot and returns the size of a volume from it, in bytes. Throws if there is no usable copy. */
export function sealSnapshot(place: SnapshotPlace, host: VolumesHost): Promise<number> {
  return withSnapshot(place, host, async ({ directory, above }) => {
    if (directory === undefined)
      throw new SnapshotUnusableError(`Cannot seal snapshot "${place.id}": it does not exist`);
    let bytes = parseSize(await readMarker(directory, SEAL_FILE));
    if (bytes === undefined) {
      bytes = await checkCopy(directory, place, host);
      await writeMarker(directory, SEAL_FILE, String(bytes));
    }
    // From the inside out. Also if the seal exists: an earlier call may have been interrupted after writing it.
    for (const one of [directory, ...above]) await one.sync();
    return bytes;
  });
}

async function checkCopy(directory: Directory, place: SnapshotPlace, host: VolumesHost): Promise<number> {
  const { id } = place;
  const format = await readMarker(directory, FORMAT_FILE);
  if (format === STATE_FORMAT) return (await readArchive(directory, place)).bytes;
  await using file = await directory.open(DISK_IMAGE, O_RDWR);
  const stats = await file?.stat();
  if (file === undefined || stats?.isFile() !== true)
    throw new SnapshotUnusableError(`Cannot seal snapshot "${id}": it has no image`);
  // The owner changes first, so that no other user can modify the file during the check.
  if (host.isRoot) await takeBack(file);
  if (format !== 'raw' && format !== 'qcow2')
    throw new SnapshotUnusableError(`Cannot seal snapshot "${id}": its format is unknown`);
  const bytes = format === 'raw' ? stats.size : await checkQcow2(file, join(directory.path, DISK_IMAGE));
  await file.sync();
  return bytes;
}

/** Reads the archive, which no guest could ever modify. */
async function readArchive(
  directory: Directory,
  { id }: SnapshotPlace,
): Promise<{ bytes: number; files: readonly StateFile[] }> {
  await using file = await directory.open(ARCHIVE_FILE, O_RDONLY);
  const stats = await file?.stat();
  if (file === undefined || stats?.isFile() !== true) {
    throw new SnapshotUnusableError(`Cannot use snapshot "${id}": it has no archive`);
  }
  if (stats.size > MAX_STATE_ARCHIVE_BYTES)
    throw new SnapshotUnusableError(`Cannot use snapshot "${id}": it is too large`);
  return { bytes: stats.size, files: parseArchive(await file.readFile()) };
}

/** Returns the size of the disk in a qcow2 image. Throws if it is not one, or if it refers to other files. */
async function checkQcow2(file: FileHandle, path: string): Promise<number> {
  const detected = await detectFormat(file, path);
  if (isVolumeRefusal(detected)) throw new SnapshotUnusableError(detected.message);
  if (detected.is !== 'qcow2') throw new SnapshotUnusableError(`Cannot use image "${path}": it is raw; expected qcow2`);
  return detected.virtualBytes;
}

/** Does nothing if there is no such snapshot. */
export function removeSnapshot(place: SnapshotPlace, host: VolumesHost): Promise<void> {
  return withSnapshot(place, host, async ({ directory, above: [snapshots] }) => {
    // The seal goes first: if the agent is killed, the rest must not look complete.
    await directory?.unlink(SEAL_FILE);
    await snapshots?.removeChild(place.id);
  });
}

/** Calls `use` with the sealed snapshot. Throws if it is not sealed. */
export function useSealedSnapshot<T>(
  place: SnapshotPlace,
  host: VolumesHost,
  use: (snapshot: SealedSnapshot) => Promise<T>,
): Promise<T> {
  return withSnapshot(place, host, async ({ directory }) => {
    const isSealed = directory && parseSize(await readMarker(directory, SEAL_FILE)) !== undefined;
    const format = directory && (await readMarker(directory, FORMAT_FILE));
    const isKnown = format === 'raw' || format === 'qcow2' || format === STATE_FORMAT;
    if (directory === undefined || isSealed !== true || !isKnown) {
      const now = directory === undefined ? 'it does not exist' : 'it is not complete';
      throw new Error(`Cannot use snapshot "${place.id}": ${now}; expected a sealed one`);
    }
    if (format === STATE_FORMAT) return await use({ format, files: (await readArchive(directory, place)).files });
    const path = join(directory.path, DISK_IMAGE);
    await using image = await directory.open(DISK_IMAGE, O_RDONLY);
    if (image === undefined) throw new Error(`Cannot use snapshot "${place.id}": it has no image`);
    // Checked again, because a compromised hypervisor could keep the file open and write to it after the seal.
    if (format === 'qcow2') await checkQcow2(image, path);
    return await use({ path, format });
  });
}

interface OpenSnapshot {
  readonly directory: Directory | undefined;
  /** The directory of all snapshots and its parent, if they exist. */
  readonly above: readonly Directory[];
}

async function withSnapshot<T>(
  place: SnapshotPlace,
  host: VolumesHost,
  use: (snapshot: OpenSnapshot) => Promise<T>,
): Promise<T> {
  await using root = await Directory.open(snapshotRoot(place, host));
  await using snapshots = await root?.child(SNAPSHOTS_DIR);
  await using directory = await snapshots?.child(place.id);
  const above = root === undefined || snapshots === undefined ? [] : [snapshots, root];
  return await use({ directory, above });
}

function snapshotRoot(place: SnapshotPlace, { nodeName, nodeDir, sharedDir }: VolumesHost): string {
  if (place.scope === 'shared') return sharedDir;
  if (place.node === nodeName) return nodeDir;
  throw new Error(`Cannot use snapshot "${place.id}": its data is on node "${place.node}"; this is node "${nodeName}"`);
}

function parseSize(note: string | undefined): number | undefined {
  return note !== undefined && /^\d{1,16}$/.test(note) ? Number(note) : undefined;
}
