/**
 * Copies of a volume on a node other than its data node (VOLUME_NODE_ANNOTATION): one that an incoming guest fills, and
 * a leftover. The migration controller requests both with annotations of the PersistentVolume, one at a time:
 *
 *   INCOMING_NODE_ANNOTATION is this node ──prepareIncoming──► empty, for the hypervisor to fill
 *   LEFTOVER_NODE_ANNOTATION is this node ──removeLeftover──► removed
 *
 * This module never touches volumes whose data node is this node.
 */
import { join } from 'node:path';
import { INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION, LOCAL_DRIVER } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { DiskRefusedError, type IncomingDisk } from '#node/volumes/volumes-port.ts';
import { openBelow } from '#node/volumes/local/mounts/directory.ts';
import { detachLoops, findLoopUsers, findOtherUsers } from '#node/volumes/local/mounts/loop-device.ts';
import {
  openOwnDirectory,
  prepareOwnVolume,
  removeOwnData,
  syncOwnData,
  type OwnPlace,
  type VolumeUser,
} from '#node/volumes/local/kinds/persistent-volume.ts';
import { dataNodeOf, isSharedVolume, ownPlaceBelow, VOLUMES_DIR } from '#node/volumes/local/volume-place.ts';
import {
  failedRefusal,
  isVolumeRefusal,
  waitingRefusal,
  type PreparedDisk,
  type VolumeRefusal,
  type VolumesHost,
} from '#node/volumes/local/volumes-host.ts';

/**
 * Returns a refusal if the node does not have enough space for all incoming disks. Checked before anything is copied.
 */
export async function checkRoomForIncoming(
  moving: ReadonlyMap<string, IncomingDisk>,
  { nodeDir, nodeName, freeBytes }: VolumesHost,
): Promise<VolumeRefusal | undefined> {
  const neededBytes = moving.values().reduce((sum, { bytes, usedBytes = 0 }) => sum + Math.min(bytes, usedBytes), 0);
  const leftBytes = neededBytes === 0 ? 0 : await freeBytes(nodeDir);
  if (leftBytes >= neededBytes) return undefined;
  const message = `Node "${nodeName}" has ${leftBytes} bytes left for disks; the guest needs ${neededBytes}`;
  return failedRefusal('NoSpaceLeft', message);
}

/**
 * Creates an empty copy, durably, and replaces any earlier one at each call; so it must not be called while a
 * hypervisor has the copy open.
 */
export async function prepareIncoming(
  volume: PersistentVolume,
  bytes: number,
  user: VolumeUser,
  host: VolumesHost,
): Promise<PreparedDisk> {
  const { name, annotations = {} } = volume.metadata;
  const place = findCopyPlace(volume, host);
  if (isVolumeRefusal(place)) return place;
  if (annotations[INCOMING_NODE_ANNOTATION] !== host.nodeName) {
    return failedRefusal(
      'VolumeOnOtherNode',
      `PersistentVolume "${name}" is not being migrated to node "${host.nodeName}"`,
    );
  }
  // removeLeftover is still to be called.
  if (annotations[LEFTOVER_NODE_ANNOTATION] === host.nodeName) {
    return waitingRefusal(
      'LeftoverPending',
      `An earlier copy of PersistentVolume "${name}" has not been removed from this node yet`,
    );
  }
  if (place.block && host.isRoot) {
    const refusal = await detachEarlierDevice(place, user, host);
    if (refusal !== undefined) return refusal;
  }
  await removeOwnData(place);
  const prepared = await prepareOwnVolume({ ...place, bytes }, user, host);
  if (prepared.is === 'ready') await syncOwnData(place);
  return prepared;
}

/**
 * Removes the copy. Does nothing if there is none. Throws DiskRefusedError while a guest of this node uses it as a block
 * device.
 */
export async function removeLeftover(volume: PersistentVolume, host: VolumesHost): Promise<void> {
  const { name, annotations = {} } = volume.metadata;
  const place = findCopyPlace(volume, host);
  if (isVolumeRefusal(place)) throw new Error(`Cannot remove a copy of PersistentVolume "${name}": ${place.message}`);
  if (annotations[INCOMING_NODE_ANNOTATION] === host.nodeName) {
    throw new Error(`Cannot remove a copy of PersistentVolume "${name}": its guest is being migrated to this node`);
  }
  if (host.isRoot && (await isAttached(place, host))) {
    throw new DiskRefusedError(
      `Cannot remove a copy of PersistentVolume "${name}": a guest of this node still uses it as a block device`,
    );
  }
  await removeOwnData(place);
}

function findCopyPlace(volume: PersistentVolume, { nodeName, nodeDir }: VolumesHost): OwnPlace | VolumeRefusal {
  const { name } = volume.metadata;
  if (volume.spec.csi?.driver !== LOCAL_DRIVER || isSharedVolume(volume)) {
    return failedRefusal('VolumeUnsupported', `PersistentVolume "${name}" does not have its data on a single node`);
  }
  const dataNode = dataNodeOf(volume);
  if (dataNode === undefined || dataNode === nodeName) {
    return failedRefusal('VolumeOnThisNode', `The data of PersistentVolume "${name}" is on this node, or may be on it`);
  }
  return ownPlaceBelow(nodeDir, volume);
}

/** Detaches the device of an earlier attempt, whose image is about to be replaced. */
async function detachEarlierDevice(
  place: OwnPlace,
  { domainId, name, hasEnded }: VolumeUser,
  host: VolumesHost,
): Promise<VolumeRefusal | undefined> {
  const use = { domainId, nodeName: host.nodeName, volume: name };
  await using directory = await openOwnDirectory(place);
  const others = (await findOtherUsers(directory, use)).filter((other) => !hasEnded(other.domainId));
  if (others.length > 0) {
    return waitingRefusal('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  await detachLoops(use, [join(place.root, VOLUMES_DIR)], host.run);
  return undefined;
}

async function isAttached({ root, name }: OwnPlace, { nodeName }: VolumesHost): Promise<boolean> {
  const directory = await openBelow(root, [VOLUMES_DIR, name]);
  if (directory === undefined || directory === 'link') return false;
  await using found = directory;
  return (await findLoopUsers(found, nodeName)).length > 0;
}
