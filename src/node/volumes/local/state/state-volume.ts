/**
 * Prepares volumes for the persistent state of a VM, the content of its TPM and its EFI variables, in a directory
 * `state/`. In a volume of mode Filesystem it is beside the image. A block volume has a file system, which is mounted
 * for its domain:
 *
 *   <node dir>/state-mounts/<domain id>/     not in the domain's directory, which is removed recursively
 *
 * The agent creates the entries of `state/` (hypervisor/), and they belong to the user of the guest. The kernel alone keeps
 * track of mounts, so that the agent may be killed at any point.
 */
import { constants } from 'node:fs';
import { mkdir, readFile, realpath, stat, type FileHandle } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { invariant } from '#lib/invariant.ts';
import { Directory, isErrorWithCode, isFileName } from '#node/volumes/local/mounts/directory.ts';
import { openDomainDirectory } from '#node/volumes/local/kinds/domain-files.ts';
import { attachLoop, detachLoops, findOtherUsers } from '#node/volumes/local/mounts/loop-device.ts';
import { readMounts } from '#lib/mounts.ts';
import { mountNfs } from '#node/volumes/local/mounts/nfs-mount.ts';
import {
  refusePendingCopy,
  openOwnDirectory,
  ensureOwnImage,
  TRAVERSE_ONLY,
  syncOwnData,
  type OwnPlace,
} from '#node/volumes/local/kinds/persistent-volume.ts';
import { ensureFileSystem } from '#node/volumes/local/state/state-file-system.ts';
import { DISK_IMAGE, isReadOnlyVolume, STATE_DIR, findVolumePlace } from '#node/volumes/local/volume-place.ts';
import {
  failedRefusal,
  isVolumeRefusal,
  missingRefusal,
  waitingRefusal,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

const { O_RDONLY } = constants;

export const MOUNTS_DIR = 'state-mounts';
/** Restrictive, because guests write the content. */
const MOUNT_OPTIONS = 'nosuid,nodev,noexec,noatime,nosymfollow';
/**
 * A file system that other machines can access is observed for a while before the mount if its last user was cut off.
 */
const MOUNT_TIMEOUT_MS = 180_000;
/** The volume name of the loop device; volumes of instances cannot have this name. */
const LOOP_NAME = 'vm.state';
const MAX_DEPTH = 4;
const MAX_ENTRIES = 256;

interface StateUser {
  readonly domainId: string;
  /** Reports whether another domain of this node has ended and no longer uses the volume. */
  readonly hasEnded: (domainId: string) => boolean;
}

type PreparedState = { readonly is: 'ready'; readonly directory: string } | VolumeRefusal;

/** Prepares the volume for the state of its user. May be repeated. Throws system errors. */
export async function prepareState(
  volume: PersistentVolume,
  user: StateUser,
  host: VolumesHost,
): Promise<PreparedState> {
  const { name = '' } = volume.metadata;
  if (isReadOnlyVolume(volume)) {
    return failedRefusal(
      'VolumeUnsupported',
      `Cannot keep persistent state on PersistentVolume "${name}": it is read-only`,
    );
  }
  const place = findVolumePlace(volume, host);
  switch (place.is) {
    case 'own': {
      const pending = await refusePendingCopy(volume, place);
      if (pending !== undefined) return pending;
      if (place.block) return await prepareOnBlockVolume(place, user, host);
      await using directory = await openOwnDirectory(place);
      const prepared = await ensureStateDirectory(directory, host);
      // Synced, because a migrating guest's state is removed from its source node afterwards.
      await syncOwnData(place);
      return prepared;
    }
    case 'directory': {
      const refusal = await mountNfs(place, host);
      if (refusal !== undefined) return refusal;
      if (place.create) await mkdir(place.path, { recursive: true, mode: 0o755 });
      await using directory = await Directory.open(place.path);
      if (directory !== undefined) return await ensureStateDirectory(directory, host);
      return missingRefusal('VolumePathMissing', `PersistentVolume "${name}": "${place.path}" does not exist`);
    }
    case 'device':
      return await prepareOnDevice(place.path, user, host);
    case 'waiting':
    case 'failed':
      return place;
  }
}

/**
 * Unmounts the volume after the domain has ended. Does nothing if there is no mount; throws while a file in it is open.
 */
export async function releaseStateVolume(domainId: string, { nodeDir, run }: VolumesHost): Promise<void> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  await using mounts = await openMountsDirectory(nodeDir);
  {
    await using target = await mounts?.child(domainId);
    if (target === undefined) return;
  }
  const path = join(nodeDir, MOUNTS_DIR, domainId);
  for (const { target } of await readMounts()) if (target === path) await run('umount', [path]);
  await mounts?.removeEmptyChild(domainId);
}

/** Unmounts the volumes of all unwanted domains. */
export async function releaseUnwantedStates(isWanted: (domainId: string) => boolean, host: VolumesHost): Promise<void> {
  await using mounts = await openMountsDirectory(host.nodeDir);
  for (const domainId of (await mounts?.names()) ?? [])
    if (!isWanted(domainId)) await releaseStateVolume(domainId, host);
}

async function openMountsDirectory(nodeDir: string): Promise<Directory | undefined> {
  await using root = await Directory.open(nodeDir);
  return await root?.child(MOUNTS_DIR);
}

async function prepareOnBlockVolume(place: OwnPlace, user: StateUser, host: VolumesHost): Promise<PreparedState> {
  if (!host.isRoot) return refuseWithoutRoot();
  await using directory = await openOwnDirectory(place);
  const image = await ensureOwnImage(directory, place, host);
  if (image.is !== 'ready') return image;
  await syncOwnData(place);
  const use = { domainId: user.domainId, nodeName: host.nodeName, volume: LOOP_NAME };
  const volumeDirs = [dirname(directory.path)];
  const device = await attachLoop(directory, DISK_IMAGE, use, { run: host.run, readonly: false });
  // Checked after attaching, so that of two concurrent guests at least one detects the other.
  for (const { domainId } of await findOtherUsers(directory, use)) {
    if (domainId !== user.domainId && user.hasEnded(domainId)) {
      await releaseStateVolume(domainId, host);
      await detachLoops({ ...use, domainId }, volumeDirs, host.run);
      continue;
    }
    await detachLoops(use, volumeDirs, host.run);
    return waitingRefusal('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  return await mountState({ device, isShared: place.root === host.sharedDir }, user, host);
}

/** Prepares a block device of an administrator. */
async function prepareOnDevice(path: string, user: StateUser, host: VolumesHost): Promise<PreparedState> {
  if (!host.isRoot) return refuseWithoutRoot();
  const device = await realpath(path).catch(() => undefined);
  if (device === undefined)
    return missingRefusal('VolumePathMissing', `Cannot use block device "${path}": it does not exist`);
  if (!(await stat(device)).isBlockDevice()) {
    return failedRefusal('VolumeUnsupported', `Cannot use "${path}" as a block device: it is not one`);
  }
  const number = await deviceNumber(device);
  for (const mount of await readMounts()) {
    if (mount.device !== number || dirname(mount.target) !== join(host.nodeDir, MOUNTS_DIR)) continue;
    const domainId = basename(mount.target);
    if (domainId !== user.domainId && user.hasEnded(domainId)) await releaseStateVolume(domainId, host);
  }
  return await mountState({ device, isShared: true }, user, host);
}

async function mountState(
  { device, isShared }: { device: string; isShared: boolean },
  { domainId }: StateUser,
  host: VolumesHost,
): Promise<PreparedState> {
  invariant(isFileName(domainId), 'the id of a domain is a uid');
  const path = join(host.nodeDir, MOUNTS_DIR, domainId);
  const number = await deviceNumber(device);
  const found = (await readMounts()).filter(({ target }) => target === path);
  if (found.length !== 1 || found[0]?.device !== number) {
    // Unmounts an earlier device.
    await releaseStateVolume(domainId, host);
    await using work = await openDomainDirectory(host, domainId);
    const refusal = await ensureFileSystem({ device, isShared, work }, host);
    if (refusal !== undefined) return refusal;
    await makeMountPoint(domainId, host.nodeDir);
    const args = ['-t', 'ext4', '-o', MOUNT_OPTIONS, device, path];
    await host.run('mount', args, { timeoutMs: MOUNT_TIMEOUT_MS });
  }
  await using root = await Directory.open(path);
  if (root === undefined)
    throw new Error(`Cannot keep persistent state in "${path}": the directory was removed meanwhile`);
  return await ensureStateDirectory(root, host);
}

async function makeMountPoint(domainId: string, nodeDir: string): Promise<void> {
  await using root = await Directory.open(nodeDir);
  await using mounts = await root?.makeChild(MOUNTS_DIR, TRAVERSE_ONLY);
  await using _ = await mounts?.makeChild(domainId, TRAVERSE_ONLY);
}

/** Finds or creates `state/` in the directory of a volume. */
async function ensureStateDirectory(volume: Directory, { isRoot }: VolumesHost): Promise<PreparedState> {
  await using state = await volume.makeChild(STATE_DIR, TRAVERSE_ONLY);
  await volume.sync();
  const refusal = isRoot ? await refuseContents(state) : undefined;
  return refusal ?? { is: 'ready', directory: state.path };
}

/** Refuses links and devices: a guest wrote the files, and the hypervisor gives them to the next one as root. */
async function refuseContents(directory: Directory, depth = MAX_DEPTH): Promise<VolumeRefusal | undefined> {
  const names = await directory.names();
  if (names.length > MAX_ENTRIES || depth === 0) return refuseEntry(directory.path, 'it has too many entries');
  for (const name of names) {
    const path = join(directory.path, name);
    const entry = await openEntry(directory, name);
    if (isVolumeRefusal(entry)) return entry;
    await using file = entry;
    const stats = await file.stat();
    if (stats.isDirectory()) {
      await using child = await directory.child(name);
      const refusal = child && (await refuseContents(child, depth - 1));
      if (refusal !== undefined) return refusal;
    } else if (!stats.isFile() || stats.nlink !== 1) {
      return refuseEntry(path, 'it is not a regular file with a single name');
    }
  }
  return undefined;
}

async function openEntry(directory: Directory, name: string): Promise<FileHandle | VolumeRefusal> {
  const path = join(directory.path, name);
  try {
    const file = await directory.open(name, O_RDONLY);
    return (
      file ??
      waitingRefusal(
        'FailedMount',
        `Cannot keep persistent state in "${directory.path}": "${name}" was removed meanwhile`,
      )
    );
  } catch (error) {
    if (isErrorWithCode(error, 'ELOOP', 'ENXIO', 'ENODEV')) return refuseEntry(path, 'it is a link or a device');
    throw error;
  }
}

function refuseEntry(path: string, why: string): VolumeRefusal {
  return failedRefusal(
    'StateRefused',
    `Cannot keep persistent state with "${path}": ${why}; expected only files and directories that a guest stores there`,
  );
}

function refuseWithoutRoot(): VolumeRefusal {
  const message =
    'Cannot keep persistent state on volumes of mode Block: that needs a mount, and the agent does not run as root; ' +
    'use Filesystem';
  return failedRefusal('VolumeUnsupported', message);
}

/** Returns major and minor number: `7:3`. */
async function deviceNumber(device: string): Promise<string> {
  return (await readFile(`/sys/class/block/${basename(device)}/dev`, 'utf8')).trim();
}
