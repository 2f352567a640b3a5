/**
 * Volumes that keep the state of a VM: the content of its TPM and its EFI variables, in a directory `state/`. Of a volume
 * of files it is beside the image; a block volume carries a file system, which is mounted for its domain alone:
 *
 *   <node dir>/state-mounts/<domain id>/     not in the domain's own directory, which is removed with all that is in it
 *
 * Names in `state/` are ours to make (hypervisor/), and what they name belongs to the user of guests. The kernel alone
 * remembers what is mounted, so that we may be killed at any point.
 */
import { constants } from 'node:fs';
import { mkdir, readFile, realpath, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { invariant } from '#lib/invariant.ts';
import { Directory, isErrorWithCode, isFileName } from './directory.ts';
import { giveTo } from './disk-image.ts';
import { domainDirectory } from './domain-files.ts';
import { attachLoop, detachLoops, usersBeside } from './loop-device.ts';
import { readMounts } from './mounts.ts';
import { mountPlace } from './nfs-mount.ts';
import { copyPending, ownDirectory, ownImage, PASSABLE, syncOwn, type OwnPlace } from './persistent-volume.ts';
import { ensureFileSystem } from './state-file-system.ts';
import { DISK_IMAGE, isReadOnlyVolume, STATE_DIR, volumePlace } from './volume-place.ts';
import { failed, isRefusal, missing, waiting, type GuestUser, type Refusal, type VolumesHost } from './volumes-host.ts';

const { O_RDONLY } = constants;

export const MOUNTS_DIR = 'state-mounts';
/** Whatever is on it comes from guests. */
const MOUNT_OPTIONS = 'nosuid,nodev,noexec,noatime,nosymfollow';
/** One that other machines reach is watched for a while where its last user was cut off. */
const MOUNT_TIMEOUT_MS = 180_000;
/** Of the loop device; no volume of an instance has such a name. */
const LOOP_NAME = 'vm.state';
const PRIVATE_DIR = 0o700;
const MAX_DEPTH = 4;
const MAX_ENTRIES = 256;

export interface StateUser {
  readonly domainId: string;
  /** Whether another domain of this node still uses it. */
  readonly hasEnded: (domainId: string) => boolean;
}

export type PreparedState = { readonly is: 'ready'; readonly directory: string } | Refusal;

/** May be repeated; a repeated call changes nothing. System errors are thrown. */
export async function prepareState(
  volume: PersistentVolume,
  user: StateUser,
  host: VolumesHost,
): Promise<PreparedState> {
  const { name = '' } = volume.metadata;
  if (isReadOnlyVolume(volume)) {
    return failed('VolumeUnsupported', `Cannot keep state on PersistentVolume "${name}": it may only be read`);
  }
  const place = volumePlace(volume, host);
  switch (place.is) {
    case 'own': {
      const pending = await copyPending(volume, place);
      if (pending !== undefined) return pending;
      if (place.block) return await onOwnBlock(place, user, host);
      await using directory = await ownDirectory(place);
      const prepared = await stateIn(directory, host);
      // The state of a guest that comes from another node is gone there when it is here.
      await syncOwn(place);
      return prepared;
    }
    case 'directory': {
      const refusal = await mountPlace(place, host);
      if (refusal !== undefined) return refusal;
      if (place.create) await mkdir(place.path, { recursive: true, mode: 0o755 });
      await using directory = await Directory.open(place.path);
      if (directory !== undefined) return await stateIn(directory, host);
      return missing('VolumePathMissing', `PersistentVolume "${name}": "${place.path}" does not exist`);
    }
    case 'device':
      return await onDevice(place.path, user, host);
    case 'waiting':
    case 'failed':
      return place;
  }
}

/** The domain is no more. Fine where there is nothing; throws as long as something in it is open. */
export async function releaseState(domainId: string, { nodeDir, run }: VolumesHost): Promise<void> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using mounts = await mountsDirectory(nodeDir);
  {
    await using target = await mounts?.child(domainId);
    if (target === undefined) return;
  }
  const path = join(nodeDir, MOUNTS_DIR, domainId);
  for (const { target } of await readMounts()) if (target === path) await run('umount', [path]);
  await mounts?.removeEmptyChild(domainId);
}

/** The same for every domain that is not wanted. */
export async function releaseUnwantedStates(isWanted: (domainId: string) => boolean, host: VolumesHost): Promise<void> {
  await using mounts = await mountsDirectory(host.nodeDir);
  for (const domainId of (await mounts?.names()) ?? []) if (!isWanted(domainId)) await releaseState(domainId, host);
}

async function mountsDirectory(nodeDir: string): Promise<Directory | undefined> {
  await using root = await Directory.open(nodeDir);
  return await root?.child(MOUNTS_DIR);
}

async function onOwnBlock(place: OwnPlace, user: StateUser, host: VolumesHost): Promise<PreparedState> {
  if (!host.isRoot) return needsRoot();
  await using directory = await ownDirectory(place);
  const image = await ownImage(directory, place, host);
  if (image.is !== 'ready') return image;
  await syncOwn(place);
  const use = { domainId: user.domainId, nodeName: host.nodeName, volume: LOOP_NAME };
  const volumeDirs = [dirname(directory.path)];
  const device = await attachLoop(directory, DISK_IMAGE, use, { run: host.run, readonly: false });
  // Looked at afterwards, so that of two none is missed.
  for (const { domainId } of await usersBeside(directory, use)) {
    if (domainId !== user.domainId && user.hasEnded(domainId)) {
      await releaseState(domainId, host);
      await detachLoops({ ...use, domainId }, volumeDirs, host.run);
      continue;
    }
    await detachLoops(use, volumeDirs, host.run);
    return waiting('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  return await mounted({ device, isShared: place.root === host.sharedDir }, user, host);
}

/** One of an administrator. */
async function onDevice(path: string, user: StateUser, host: VolumesHost): Promise<PreparedState> {
  if (!host.isRoot) return needsRoot();
  const device = await realpath(path).catch(() => undefined);
  if (device === undefined) return missing('VolumePathMissing', `Cannot use block device "${path}": there is none`);
  if (!(await stat(device)).isBlockDevice()) {
    return failed('VolumeUnsupported', `Cannot use "${path}" as a block device: it is none`);
  }
  const number = await numberOf(device);
  for (const mount of await readMounts()) {
    if (mount.device !== number || dirname(mount.target) !== join(host.nodeDir, MOUNTS_DIR)) continue;
    const domainId = basename(mount.target);
    if (domainId !== user.domainId && user.hasEnded(domainId)) await releaseState(domainId, host);
  }
  return await mounted({ device, isShared: true }, user, host);
}

async function mounted(
  { device, isShared }: { device: string; isShared: boolean },
  { domainId }: StateUser,
  host: VolumesHost,
): Promise<PreparedState> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  const path = join(host.nodeDir, MOUNTS_DIR, domainId);
  const number = await numberOf(device);
  const found = (await readMounts()).filter(({ target }) => target === path);
  if (found.length !== 1 || found[0]?.device !== number) {
    // Of a device that is another one by now.
    await releaseState(domainId, host);
    await using work = await domainDirectory(host, domainId);
    const refusal = await ensureFileSystem({ device, isShared, work }, host);
    if (refusal !== undefined) return refusal;
    await makeMountPoint(domainId, host.nodeDir);
    const args = ['-t', 'ext4', '-o', MOUNT_OPTIONS, device, path];
    await host.run('mount', args, { timeoutMs: MOUNT_TIMEOUT_MS });
  }
  await using root = await Directory.open(path);
  if (root === undefined) throw new Error(`Cannot keep state in "${path}": it went away`);
  return await stateIn(root, host);
}

async function makeMountPoint(domainId: string, nodeDir: string): Promise<void> {
  await using root = await Directory.open(nodeDir);
  await using mounts = await root?.makeChild(MOUNTS_DIR, PASSABLE);
  await using _ = await mounts?.makeChild(domainId, PASSABLE);
}

/** Found or made in the directory of a volume, with all that is in it the guest user's. */
async function stateIn(volume: Directory, { guestUser }: VolumesHost): Promise<PreparedState> {
  await using state = await volume.makeChild(STATE_DIR, PASSABLE);
  await volume.sync();
  const refusal = guestUser && (await giveContents(state, guestUser));
  return refusal ?? { is: 'ready', directory: state.path };
}

/** Another node, with another user of guests, may have written it. What leads out of the directory is given to nobody. */
async function giveContents(directory: Directory, user: GuestUser, depth = MAX_DEPTH): Promise<Refusal | undefined> {
  const names = await directory.names();
  if (names.length > MAX_ENTRIES || depth === 0) return strange(directory.path, 'there is too much in it');
  for (const name of names) {
    const path = join(directory.path, name);
    const entry = await openEntry(directory, name);
    if (isRefusal(entry)) return entry;
    await using file = entry;
    const stats = await file.stat();
    if (stats.isDirectory()) {
      await using child = await directory.child(name);
      const refusal = child && (await giveContents(child, user, depth - 1));
      if (refusal !== undefined) return refusal;
      if (stats.uid !== user.uid || stats.gid !== user.gid) await file.chown(user.uid, user.gid);
      if ((stats.mode & 0o777) !== PRIVATE_DIR) await file.chmod(PRIVATE_DIR);
    } else if (stats.isFile() && stats.nlink === 1) await giveTo(file, user);
    else return strange(path, 'it is no file of its own');
  }
  return undefined;
}

async function openEntry(directory: Directory, name: string): Promise<FileHandle | Refusal> {
  const path = join(directory.path, name);
  try {
    const file = await directory.open(name, O_RDONLY);
    return file ?? waiting('FailedMount', `Cannot keep state in "${directory.path}": "${name}" went away`);
  } catch (error) {
    if (isErrorWithCode(error, 'ELOOP', 'ENXIO', 'ENODEV')) return strange(path, 'it is a link or a device');
    throw error;
  }
}

function strange(path: string, why: string): Refusal {
  return failed('StateRefused', `Cannot keep state with "${path}": ${why}; expected files and directories of our own`);
}

function needsRoot(): Refusal {
  const message = 'State on volumes of mode Block needs a mount, which only root may make; use Filesystem';
  return failed('VolumeUnsupported', message);
}

/** `7:3` */
async function numberOf(device: string): Promise<string> {
  return (await readFile(`/sys/class/block/${basename(device)}/dev`, 'utf8')).trim();
}
