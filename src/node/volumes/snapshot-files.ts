/**
 * Snapshots of volumes as files: `<root>/snapshots/<id>/`, on this node or where all nodes reach it.
 *
 *   disk.img       the copy
 *   disk.format    raw or qcow2, decided by whoever made it and never by how the bytes look: a guest writes those;
 *                  `state` where it is of the state of a VM
 *   state.archive  such a copy, in the place of an image (state-archive.ts)
 *   sealed         its size in bytes; written last, so that where it is, the copy is complete and on disk
 *
 * A copy belongs to the user of guests only while the hypervisor writes it, and to us from then on.
 */
import { constants } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import type { SnapshotPlace } from '#api/snapshot-handle.ts';
import { MAX_STATE_ARCHIVE_BYTES } from '#api/snapshot-state.ts';
import { SnapshotUnusable } from '#node/volumes-port.ts';
import { Directory } from './directory.ts';
import { giveTo, looksLike, PRIVATE_FILE, readNote, replaceFile, writeNote } from './disk-image.ts';
import { FORMAT_FILE, PASSABLE } from './persistent-volume.ts';
import { parseArchive, type StateFile } from './state-archive.ts';
import { DISK_IMAGE } from './volume-place.ts';
import { isRefusal, type GuestUser, type VolumesHost } from './volumes-host.ts';

const { O_CREAT, O_EXCL, O_RDONLY, O_RDWR } = constants;

const SNAPSHOTS_DIR = 'snapshots';
const SEAL_FILE = 'sealed';
const ARCHIVE_FILE = 'state.archive';
const STATE_FORMAT = 'state';

export type SealedSnapshot =
  | { readonly format: 'raw' | 'qcow2'; readonly path: string }
  | { readonly format: typeof STATE_FORMAT; readonly files: readonly StateFile[] };

/** Empty, and the hypervisor's to write as qcow2. */
export async function makeSnapshotFile(place: SnapshotPlace, host: VolumesHost): Promise<string> {
  await using directory = await emptySnapshot(place, host);
  await writeNote(directory, FORMAT_FILE, 'qcow2');
  await using file = await directory.open(DISK_IMAGE, O_RDWR | O_CREAT | O_EXCL, PRIVATE_FILE);
  if (file !== undefined) await giveTo(file, host.guestUser);
  return join(directory.path, DISK_IMAGE);
}

/** Instead of an image; on disk when it resolves. Not complete before it is sealed. */
export async function writeArchive(place: SnapshotPlace, archive: Buffer, host: VolumesHost): Promise<void> {
  await using directory = await emptySnapshot(place, host);
  await writeNote(directory, FORMAT_FILE, STATE_FORMAT);
  await replaceFile(directory, ARCHIVE_FILE, archive, undefined);
  await directory.sync();
}

/** It gets its name when all of it is there. */
export function hasArchive(place: SnapshotPlace, host: VolumesHost): Promise<boolean> {
  return within(place, host, async ({ directory }) => {
    await using archive = await directory?.open(ARCHIVE_FILE, O_RDONLY);
    return archive !== undefined;
  });
}

/** The directory of the snapshot with nothing in it, whatever was. */
export async function emptySnapshot(place: SnapshotPlace, host: VolumesHost): Promise<Directory> {
  await removeSnapshot(place, host);
  await using root = await Directory.open(rootOf(place, host));
  if (root === undefined) throw new Error(`Cannot use snapshots: "${rootOf(place, host)}" does not exist`);
  await using snapshots = await root.makeChild(SNAPSHOTS_DIR, PASSABLE);
  return await snapshots.makeChild(place.id, PASSABLE);
}

/** How large a volume from it is, in bytes. Throws where there is no usable copy. */
export function sealSnapshot(place: SnapshotPlace, host: VolumesHost): Promise<number> {
  return within(place, host, async ({ directory, above }) => {
    if (directory === undefined) throw new SnapshotUnusable(`Cannot seal snapshot "${place.id}": there is none`);
    let bytes = sizeIn(await readNote(directory, SEAL_FILE));
    if (bytes === undefined) {
      bytes = await checkedBytes(directory, place, host);
      await writeNote(directory, SEAL_FILE, String(bytes));
    }
    // From the inside out, and also where an earlier call was cut off: it may have got no further than the seal.
    for (const one of [directory, ...above]) await one.sync();
    return bytes;
  });
}

async function checkedBytes(directory: Directory, place: SnapshotPlace, host: VolumesHost): Promise<number> {
  const { id } = place;
  const format = await readNote(directory, FORMAT_FILE);
  if (format === STATE_FORMAT) return (await readArchive(directory, place)).bytes;
  await using file = await directory.open(DISK_IMAGE, O_RDWR);
  const stats = await file?.stat();
  if (file === undefined || stats?.isFile() !== true)
    throw new SnapshotUnusable(`Cannot seal snapshot "${id}": it has no image`);
  // First taken from the hypervisor, then looked at: nobody else changes it in between.
  await giveTo(file, ourselves(host));
  if (format !== 'raw' && format !== 'qcow2')
    throw new SnapshotUnusable(`Cannot seal snapshot "${id}": its format is not known`);
  const bytes = format === 'raw' ? stats.size : await qcow2Bytes(file, join(directory.path, DISK_IMAGE));
  await file.sync();
  return bytes;
}

/** Nobody but we ever had it. */
async function readArchive(
  directory: Directory,
  { id }: SnapshotPlace,
): Promise<{ bytes: number; files: readonly StateFile[] }> {
  await using file = await directory.open(ARCHIVE_FILE, O_RDONLY);
  const stats = await file?.stat();
  if (file === undefined || stats?.isFile() !== true) {
    throw new SnapshotUnusable(`Cannot use snapshot "${id}": it has no archive`);
  }
  if (stats.size > MAX_STATE_ARCHIVE_BYTES) throw new SnapshotUnusable(`Cannot use snapshot "${id}": it is too large`);
  return { bytes: stats.size, files: parseArchive(await file.readFile()) };
}

/** How large the disk in it is. Throws where it is none, or names other files. */
async function qcow2Bytes(file: FileHandle, path: string): Promise<number> {
  const looks = await looksLike(file, path);
  if (isRefusal(looks)) throw new SnapshotUnusable(looks.message);
  if (looks.is !== 'qcow2') throw new SnapshotUnusable(`Cannot use image "${path}": it is raw; expected qcow2`);
  return looks.virtualBytes;
}

/** Fine where there is none. */
export function removeSnapshot(place: SnapshotPlace, host: VolumesHost): Promise<void> {
  return within(place, host, async ({ directory, above: [snapshots] }) => {
    // Whoever is killed in the middle must leave nothing that looks complete.
    await directory?.unlink(SEAL_FILE);
    await snapshots?.removeChild(place.id);
  });
}

/** Throws where it is not sealed. */
export function withSealed<T>(
  place: SnapshotPlace,
  host: VolumesHost,
  use: (snapshot: SealedSnapshot) => Promise<T>,
): Promise<T> {
  return within(place, host, async ({ directory }) => {
    const isSealed = directory && sizeIn(await readNote(directory, SEAL_FILE)) !== undefined;
    const format = directory && (await readNote(directory, FORMAT_FILE));
    const isKnown = format === 'raw' || format === 'qcow2' || format === STATE_FORMAT;
    if (directory === undefined || isSealed !== true || !isKnown) {
      const now = directory === undefined ? 'there is none' : 'it is not complete';
      throw new Error(`Cannot use snapshot "${place.id}": ${now}; expected a sealed one`);
    }
    if (format === STATE_FORMAT) return await use({ format, files: (await readArchive(directory, place)).files });
    const path = join(directory.path, DISK_IMAGE);
    await using image = await directory.open(DISK_IMAGE, O_RDONLY);
    if (image === undefined) throw new Error(`Cannot use snapshot "${place.id}": it has no image`);
    // Again: a hypervisor that a guest has taken over keeps the file open, and writes what it likes after the seal.
    if (format === 'qcow2') await qcow2Bytes(image, path);
    return await use({ path, format });
  });
}

interface OpenSnapshot {
  readonly directory: Directory | undefined;
  /** The directory of all snapshots, and the one above it; as far as they are there. */
  readonly above: readonly Directory[];
}

async function within<T>(
  place: SnapshotPlace,
  host: VolumesHost,
  use: (snapshot: OpenSnapshot) => Promise<T>,
): Promise<T> {
  await using root = await Directory.open(rootOf(place, host));
  await using snapshots = await root?.child(SNAPSHOTS_DIR);
  await using directory = await snapshots?.child(place.id);
  const above = root === undefined || snapshots === undefined ? [] : [snapshots, root];
  return await use({ directory, above });
}

function rootOf(place: SnapshotPlace, { nodeName, nodeDir, sharedDir }: VolumesHost): string {
  if (place.scope === 'shared') return sharedDir;
  if (place.node === nodeName) return nodeDir;
  throw new Error(`Cannot use snapshot "${place.id}": its data is on node "${place.node}"; this is node "${nodeName}"`);
}

function sizeIn(note: string | undefined): number | undefined {
  return note !== undefined && /^\d{1,16}$/.test(note) ? Number(note) : undefined;
}

/** Where guests run as we do, there is nobody to take it from. */
function ourselves({ guestUser }: VolumesHost): GuestUser | undefined {
  return guestUser && { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
}
