/** The data of PersistentVolumes on this node: made, grown, given to a domain, removed. */
import { constants } from 'node:fs';
import { chmod, chown, mkdir, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { INCOMING_NODE_ANNOTATION } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { Directory } from './directory.ts';
import { ensureImage, PRIVATE_FILE, type Image } from './disk-image.ts';
import { attachLoop, detachLoops, growLoops, usersBeside } from './loop-device.ts';
import { mountPlace } from './nfs-mount.ts';
import { DISK_IMAGE, snapshotHandleOf, STATE_DIR, volumePlace, VOLUMES_DIR, type VolumePlace } from './volume-place.ts';
import { failed, missing, waiting, type Prepared, type Refusal, type VolumesHost } from './volumes-host.ts';

const { O_RDONLY } = constants;

/** Passable for QEMU, which runs as somebody else and is told the names; readable for nobody. */
export const PASSABLE = 0o711;
/** Beside images of ours: what they are. */
export const FORMAT_FILE = 'disk.format';

export type OwnPlace = Extract<VolumePlace, { is: 'own' }>;

/** For whom a volume is prepared. */
export interface VolumeUser {
  readonly domainId: string;
  /** Under which name its instance knows the volume. */
  readonly name: string;
  readonly readonly: boolean;
  /** It comes from another node, and has the volume open there: that stays as large as it is. */
  readonly comes?: boolean;
  /** Whether another domain of this node still uses it. */
  readonly hasEnded: (domainId: string) => boolean;
}

export async function prepareVolume(volume: PersistentVolume, user: VolumeUser, host: VolumesHost): Promise<Prepared> {
  const { readonly } = user;
  const place = volumePlace(volume, host);
  switch (place.is) {
    case 'own':
      return (
        (await copyPending(volume, place)) ??
        (await ownVolume(user.comes === true ? { ...place, bytes: 0 } : place, user, host))
      );
    case 'directory': {
      const refusal = await mountPlace(place, host);
      if (refusal !== undefined) return refusal;
      if (place.create) await mkdir(place.path, { recursive: true, mode: 0o755 });
      await using directory = await Directory.open(place.path);
      if (directory === undefined) {
        return missing(
          'VolumePathMissing',
          `PersistentVolume "${volume.metadata.name}": "${place.path}" does not exist`,
        );
      }
      const wish = { name: DISK_IMAGE, createBytes: readonly ? undefined : place.bytes, readonly };
      return preparedImage(await ensureImage(directory, wish, host), readonly);
    }
    case 'device':
      return deviceVolume(place.path, readonly, host);
    case 'waiting':
    case 'failed':
      return place;
  }
}

/** The size of the medium as it is then; throws what it cannot do. */
export async function growVolume(volume: PersistentVolume, host: VolumesHost): Promise<number> {
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    throw new Error(`Cannot grow PersistentVolume "${volume.metadata.name}": it is not one of ours on this node`);
  }
  // Both copies are as large as they were when the guest began to move.
  if (volume.metadata.annotations?.[INCOMING_NODE_ANNOTATION] !== undefined) {
    throw new Error(`Cannot grow PersistentVolume "${volume.metadata.name}": it is on its way to another node`);
  }
  const pending = await copyPending(volume, place);
  if (pending !== undefined) throw new Error(pending.message);
  await using directory = await ownDirectory(place);
  const image = await ownImage(directory, place, { ...host, run: leaveToHypervisor });
  if (image.is !== 'ready') throw new Error(image.message);
  if (place.block) await growLoops(directory.path, host.run);
  return image.bytes;
}

/** Fine where there is nothing. Throws for volumes that are not ours. */
export async function removeVolume(volume: PersistentVolume, host: VolumesHost): Promise<void> {
  const place = volumePlace(volume, host);
  if (place.is !== 'own') {
    const why = 'message' in place ? place.message : 'it is not one of ours';
    throw new Error(`Cannot remove the data of PersistentVolume "${volume.metadata.name}": ${why}`);
  }
  await removeOwn(place);
}

/** All that is there. Fine where there is nothing. */
export async function removeOwn({ root: path, name }: OwnPlace): Promise<void> {
  await using root = await Directory.open(path);
  await using volumes = await root?.child(VOLUMES_DIR);
  {
    await using own = await volumes?.child(name);
    await own?.removeTree(STATE_DIR);
  }
  await volumes?.removeChild(name);
}

/** Which files there are, and that there is such a volume, is on disk when this resolves. */
export async function syncOwn({ root: path, name }: OwnPlace): Promise<void> {
  await using root = await Directory.open(path);
  await using volumes = await root?.child(VOLUMES_DIR);
  await using own = await volumes?.child(name);
  for (const one of [own, volumes, root]) await one?.sync();
}

/** A volume that is made from a snapshot is there when it is filled; until then nobody may make an empty one of it. */
export async function copyPending(volume: PersistentVolume, place: OwnPlace): Promise<Refusal | undefined> {
  if (snapshotHandleOf(volume) === undefined) return undefined;
  await using directory = await ownDirectory(place);
  await using image = await directory.open(DISK_IMAGE, O_RDONLY);
  // It gets that name when all that is in it is there (state-archive-volume.ts).
  await using state = await directory.child(STATE_DIR);
  if (image !== undefined || state !== undefined) return undefined;
  return waiting(
    'VolumeCopyPending',
    `The data of PersistentVolume "${volume.metadata.name}" is still being copied from its snapshot`,
  );
}

/** Found, or made empty, and given to the user. */
export async function ownVolume(place: OwnPlace, user: VolumeUser, host: VolumesHost): Promise<Prepared> {
  if (place.block) return blockVolume(place, user, host);
  await using directory = await ownDirectory(place);
  return preparedImage(await ownImage(directory, place, host), user.readonly);
}

async function blockVolume(
  place: OwnPlace,
  { domainId, name, readonly, hasEnded }: VolumeUser,
  host: VolumesHost,
): Promise<Prepared> {
  if (!host.isRoot) {
    return failed(
      'VolumeUnsupported',
      'Volumes of mode Block need loop devices, which only root may make; use Filesystem',
    );
  }
  await using directory = await ownDirectory(place);
  const image = await ownImage(directory, place, host);
  if (image.is !== 'ready') return image;
  const use = { domainId, nodeName: host.nodeName, volume: name };
  const path = await attachLoop(directory, DISK_IMAGE, use, { run: host.run, readonly });
  // QEMU locks its images, but here each guest has a device of its own. Looked at afterwards, so that of two none is missed.
  const others = (await usersBeside(directory, use)).filter((other) => !hasEnded(other.domainId));
  if (others.some((other) => !readonly || !other.readonly)) {
    await detachLoops(use, [dirname(directory.path)], host.run);
    return waiting('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  return deviceVolume(path, readonly, host);
}

export async function deviceVolume(
  given: string,
  readonly: boolean,
  { guestUser }: Pick<VolumesHost, 'guestUser'>,
): Promise<Prepared> {
  const path = await realpath(given).catch(() => undefined);
  if (path === undefined) return missing('VolumePathMissing', `Cannot use block device "${given}": there is none`);
  const { uid, mode, ...stats } = await stat(path);
  if ((mode & 0o170000) !== 0o060000) {
    return failed('VolumeUnsupported', `Cannot use "${given}" as a block device: it is none`);
  }
  if (guestUser !== undefined && uid !== guestUser.uid) {
    await chown(path, guestUser.uid, stats.gid);
    await chmod(path, PRIVATE_FILE);
  }
  return { is: 'ready', volume: { source: { path, format: 'raw' }, readonly, cacheNone: true } };
}

export async function ownDirectory({ root: path, name }: OwnPlace): Promise<Directory> {
  await using root = await Directory.open(path);
  if (root === undefined) throw new Error(`Cannot use volumes: the directory "${path}" does not exist`);
  await using volumes = await root.makeChild(VOLUMES_DIR, PASSABLE);
  return await volumes.makeChild(name, PASSABLE);
}

/** Found, or made empty; as large as the capacity. */
export function ownImage(
  directory: Directory,
  { block, bytes }: OwnPlace,
  host: Pick<VolumesHost, 'guestUser' | 'run'>,
): Promise<Image | Refusal> {
  const size = { createBytes: bytes, growToBytes: bytes };
  // A block volume is what its bytes are; only the loop device is given away.
  return block
    ? ensureImage(directory, { name: DISK_IMAGE, ...size, alwaysRaw: true }, { ...host, guestUser: undefined })
    : ensureImage(directory, { name: DISK_IMAGE, ...size, formatFile: FORMAT_FILE }, host);
}

function preparedImage(image: Image | Refusal, readonly: boolean): Prepared {
  if (image.is !== 'ready') return image;
  const { source, cacheNone } = image;
  return { is: 'ready', volume: { source, readonly, cacheNone } };
}

/** A qcow2 image that a guest has open is grown by the hypervisor and by nobody else. */
const leaveToHypervisor: VolumesHost['run'] = async () => ({ stdout: '' });
