/** Creates, grows, prepares and removes the data of PersistentVolumes on this node. */
import { constants } from 'node:fs';
import { mkdir, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { INCOMING_NODE_ANNOTATION, LOCAL_PROVISIONER } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { Directory } from '#node/volumes/local/mounts/directory.ts';
import { ensureImage, type Image } from '#node/volumes/local/content/disk-image.ts';
import { attachLoop, detachLoops, updateLoopSizes, findOtherUsers } from '#node/volumes/local/mounts/loop-device.ts';
import { mountNfs } from '#node/volumes/local/mounts/nfs-mount.ts';
import {
  DISK_IMAGE,
  snapshotHandleOf,
  STATE_DIR,
  findVolumePlace,
  VOLUMES_DIR,
  type VolumePlace,
} from '#node/volumes/local/volume-place.ts';
import {
  failedRefusal,
  missingRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

const { O_RDONLY } = constants;

/** QEMU, which runs as another user and gets full paths, can traverse the directory but not list it. */
export const TRAVERSE_ONLY = 0o711;
/** The file beside our own images that records their format. */
export const FORMAT_FILE = 'disk.format';

export type OwnPlace = Extract<VolumePlace, { is: 'own' }>;

/** The domain for which a volume is prepared. */
export interface VolumeUser {
  readonly domainId: string;
  /** The name of the volume in the instance. */
  readonly name: string;
  readonly readonly: boolean;
  /** True if the guest comes from another node, where it has the volume open; the volume does not grow meanwhile. */
  readonly isIncoming?: boolean;
  /** Reports whether another domain of this node has ended and no longer uses the volume. */
  readonly hasEnded: (domainId: string) => boolean;
}

export async function prepareVolume(
  volume: PersistentVolume,
  user: VolumeUser,
  host: VolumesHost,
): Promise<PreparedDisk> {
  const { readonly } = user;
  const place = findVolumePlace(volume, host);
  switch (place.is) {
    case 'own':
      return (
        (await refusePendingCopy(volume, place)) ??
        (await prepareOwnVolume(user.isIncoming === true ? { ...place, bytes: 0 } : place, user, host))
      );
    case 'directory': {
      const refusal = await mountNfs(place, host);
      if (refusal !== undefined) return refusal;
      if (place.create) await mkdir(place.path, { recursive: true, mode: 0o755 });
      await using directory = await Directory.open(place.path);
      if (directory === undefined) {
        return missingRefusal(
          'VolumePathMissing',
          `PersistentVolume "${volume.metadata.name}": "${place.path}" does not exist`,
        );
      }
      const options = { name: DISK_IMAGE, createBytes: readonly ? undefined : place.bytes, readonly };
      return toPreparedDisk(await ensureImage(directory, options, host), readonly);
    }
    case 'device':
      return prepareDevice(place.path, readonly);
    case 'waiting':
    case 'failed':
      return place;
  }
}

/** Grows the medium to the capacity and returns its size. Throws if that is not possible. */
export async function growVolume(volume: PersistentVolume, host: VolumesHost): Promise<number> {
  const place = findVolumePlace(volume, host);
  if (place.is !== 'own') {
    throw new Error(
      `Cannot grow PersistentVolume "${volume.metadata.name}": it does not belong to ${LOCAL_PROVISIONER}, or its data is not on this node`,
    );
  }
  // Both copies keep the size from the start of the migration.
  if (volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined) {
    throw new Error(`Cannot grow PersistentVolume "${volume.metadata.name}": it is being migrated to another node`);
  }
  const pending = await refusePendingCopy(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  await using directory = await openOwnDirectory(place);
  const image = await ensureOwnImage(directory, place, { ...host, run: skipCommand });
  if (image.is !== 'ready') throw new Error(image.message);
  if (place.block) await updateLoopSizes(directory.path, host.run);
  return image.bytes;
}

/** Removes the data of a volume. Does nothing if there is none. Throws for volumes of other provisioners. */
export async function removeVolumeData(volume: PersistentVolume, host: VolumesHost): Promise<void> {
  const place = findVolumePlace(volume, host);
  if (place.is !== 'own') {
    const why = 'message' in place ? place.message : `it does not belong to ${LOCAL_PROVISIONER}`;
    throw new Error(`Cannot remove the data of PersistentVolume "${volume.metadata.name}": ${why}`);
  }
  await removeOwnData(place);
}

/** Removes the whole directory of the volume. Does nothing if there is none. */
export async function removeOwnData({ root: path, name }: OwnPlace): Promise<void> {
  await using root = await Directory.open(path);
  await using volumes = await root?.child(VOLUMES_DIR);
  {
    await using own = await volumes?.child(name);
    await own?.removeTree(STATE_DIR);
  }
  await volumes?.removeChild(name);
}

/** Makes the names of the volume's files, and of its directory, durable. */
export async function syncOwnData({ root: path, name }: OwnPlace): Promise<void> {
  await using root = await Directory.open(path);
  await using volumes = await root?.child(VOLUMES_DIR);
  await using own = await volumes?.child(name);
  for (const one of [own, volumes, root]) await one?.sync();
}

/** Refuses a volume that is still to be filled from a snapshot, so that no empty image is created for it. */
export async function refusePendingCopy(volume: PersistentVolume, place: OwnPlace): Promise<VolumeRefusal | undefined> {
  if (snapshotHandleOf(volume) === undefined) return undefined;
  await using directory = await openOwnDirectory(place);
  await using image = await directory.open(DISK_IMAGE, O_RDONLY);
  // The directory gets this name when its content is complete (state-archive-volume.ts).
  await using state = await directory.child(STATE_DIR);
  if (image !== undefined || state !== undefined) return undefined;
  return waitingRefusal(
    'VolumeCopyPending',
    `The data of PersistentVolume "${volume.metadata.name}" is still being copied from its snapshot`,
  );
}

/** Prepares a volume of LOCAL_PROVISIONER for its user, creating an empty one if needed. */
export async function prepareOwnVolume(place: OwnPlace, user: VolumeUser, host: VolumesHost): Promise<PreparedDisk> {
  if (place.block) return prepareBlockVolume(place, user, host);
  await using directory = await openOwnDirectory(place);
  return toPreparedDisk(await ensureOwnImage(directory, place, host), user.readonly);
}

async function prepareBlockVolume(
  place: OwnPlace,
  { domainId, name, readonly, hasEnded }: VolumeUser,
  host: VolumesHost,
): Promise<PreparedDisk> {
  if (!host.isRoot) {
    return failedRefusal(
      'VolumeUnsupported',
      'Cannot use volumes of mode Block: they need loop devices, and the agent does not run as root; use Filesystem',
    );
  }
  await using directory = await openOwnDirectory(place);
  const image = await ensureOwnImage(directory, place, host);
  if (image.is !== 'ready') return image;
  const use = { domainId, nodeName: host.nodeName, volume: name };
  const path = await attachLoop(directory, DISK_IMAGE, use, { run: host.run, readonly });
  // QEMU's locks do not help, because each guest has its own device. Checked after attaching, so that of two concurrent
  // guests at least one detects the other.
  const others = (await findOtherUsers(directory, use)).filter((other) => !hasEnded(other.domainId));
  if (others.some((other) => !readonly || !other.readonly)) {
    await detachLoops(use, [dirname(directory.path)], host.run);
    return waitingRefusal('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  return prepareDevice(path, readonly);
}

export async function prepareDevice(devicePath: string, readonly: boolean): Promise<PreparedDisk> {
  const path = await realpath(devicePath).catch(() => undefined);
  if (path === undefined)
    return missingRefusal('VolumePathMissing', `Cannot use block device "${devicePath}": it does not exist`);
  const { mode } = await stat(path);
  if ((mode & 0o170000) !== 0o060000) {
    return failedRefusal('VolumeUnsupported', `Cannot use "${devicePath}" as a block device: it is not one`);
  }
  return { is: 'ready', volume: { source: { path, format: 'raw' }, readonly, cacheNone: true } };
}

export async function openOwnDirectory({ root: path, name }: OwnPlace): Promise<Directory> {
  await using root = await Directory.open(path);
  if (root === undefined) throw new Error(`Cannot use volumes: the directory "${path}" does not exist`);
  await using volumes = await root.makeChild(VOLUMES_DIR, TRAVERSE_ONLY);
  return await volumes.makeChild(name, TRAVERSE_ONLY);
}

/** Finds the image or creates an empty one, and grows it to the capacity. */
export function ensureOwnImage(
  directory: Directory,
  { block, bytes }: OwnPlace,
  host: Pick<VolumesHost, 'run'>,
): Promise<Image | VolumeRefusal> {
  const size = { createBytes: bytes, growToBytes: bytes };
  // The format of a block volume is not detected.
  return block
    ? ensureImage(directory, { name: DISK_IMAGE, ...size, alwaysRaw: true }, host)
    : ensureImage(directory, { name: DISK_IMAGE, ...size, formatFile: FORMAT_FILE }, host);
}

function toPreparedDisk(image: Image | VolumeRefusal, readonly: boolean): PreparedDisk {
  if (image.is !== 'ready') return image;
  const { source, cacheNone } = image;
  return { is: 'ready', volume: { source, readonly, cacheNone } };
}

/** Runs nothing: only the hypervisor may resize a qcow2 image that a guest has open. */
const skipCommand: VolumesHost['run'] = async () => ({ stdout: '' });
