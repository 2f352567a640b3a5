/**
 * The copy of a volume on a node that is not its home (VOLUME_NODE_ANNOTATION): one that a guest brings along, and one
 * that counts no more. Whoever decides where home is says so in annotations of the PersistentVolume, one at a time:
 *
 *   INCOMING_NODE_ANNOTATION is this node ──prepareIncoming──► empty, for the hypervisor to fill
 *   LEFTOVER_NODE_ANNOTATION is this node ──removeLeftover──► gone
 *
 * What this node is home to is never touched here.
 */
import { join } from 'node:path';
import { INCOMING_NODE_ANNOTATION, LEFTOVER_NODE_ANNOTATION, LOCAL_DRIVER } from '#api/names.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import { DiskRefused, type MovingVolume } from '#node/volumes-port.ts';
import { openBelow } from './directory.ts';
import { detachLoops, loopUsers, usersBeside } from './loop-device.ts';
import { ownDirectory, ownVolume, removeOwn, syncOwn, type OwnPlace, type VolumeUser } from './persistent-volume.ts';
import { holderOf, isShared, ownPlaceIn, VOLUMES_DIR } from './volume-place.ts';
import { failed, isRefusal, waiting, type Prepared, type Refusal, type VolumesHost } from './volumes-host.ts';

/** Told before anything is copied: a disk that is full in the end has cost a lot by then. Undefined where there is room. */
export async function noRoom(
  moving: ReadonlyMap<string, MovingVolume>,
  { nodeDir, nodeName, freeBytes }: VolumesHost,
): Promise<Refusal | undefined> {
  const needed = moving.values().reduce((sum, { bytes, usedBytes = 0 }) => sum + Math.min(bytes, usedBytes), 0);
  const left = needed === 0 ? 0 : await freeBytes(nodeDir);
  if (left >= needed) return undefined;
  const message = `Node "${nodeName}" has ${left} bytes left for disks; the guest brings ${needed}`;
  return failed('NoSpaceLeft', message);
}

/** Made anew at each call: never while a hypervisor has it open. It is on disk that it is there when this resolves. */
export async function prepareIncoming(
  volume: PersistentVolume,
  bytes: number,
  user: VolumeUser,
  host: VolumesHost,
): Promise<Prepared> {
  const { name, annotations = {} } = volume.metadata;
  const place = copyPlace(volume, host);
  if (isRefusal(place)) return place;
  if (annotations[INCOMING_NODE_ANNOTATION] !== host.nodeName) {
    return failed('VolumeOnOtherNode', `PersistentVolume "${name}" is not on its way to node "${host.nodeName}"`);
  }
  // Somebody is about to remove it.
  if (annotations[LEFTOVER_NODE_ANNOTATION] === host.nodeName) {
    return waiting('LeftoverPending', `An earlier copy of PersistentVolume "${name}" is still to be removed here`);
  }
  if (place.block && host.isRoot) {
    const refusal = await letGo(place, user, host);
    if (refusal !== undefined) return refusal;
  }
  await removeOwn(place);
  const prepared = await ownVolume({ ...place, bytes }, user, host);
  if (prepared.is === 'ready') await syncOwn(place);
  return prepared;
}

/** Fine where there is nothing. Throws DiskRefused while a guest of this node has it as a block device. */
export async function removeLeftover(volume: PersistentVolume, host: VolumesHost): Promise<void> {
  const { name, annotations = {} } = volume.metadata;
  const place = copyPlace(volume, host);
  if (isRefusal(place)) throw new Error(`Cannot remove a copy of PersistentVolume "${name}": ${place.message}`);
  if (annotations[INCOMING_NODE_ANNOTATION] === host.nodeName) {
    throw new Error(`Cannot remove a copy of PersistentVolume "${name}": its guest is on its way to this node`);
  }
  if (host.isRoot && (await hasLoops(place, host))) {
    throw new DiskRefused(`The copy of PersistentVolume "${name}" is still the device of a guest of this node`);
  }
  await removeOwn(place);
}

function copyPlace(volume: PersistentVolume, { nodeName, nodeDir }: VolumesHost): OwnPlace | Refusal {
  const { name } = volume.metadata;
  if (volume.spec.csi?.driver !== LOCAL_DRIVER || isShared(volume)) {
    return failed('VolumeUnsupported', `PersistentVolume "${name}" does not lie on a node`);
  }
  const holder = holderOf(volume);
  if (holder === undefined || holder === nodeName) {
    return failed('VolumeOnThisNode', `The data of PersistentVolume "${name}" is on this node, or may be`);
  }
  return ownPlaceIn(nodeDir, volume);
}

/** The device of an earlier try stands on an image that goes now. */
async function letGo(
  place: OwnPlace,
  { domainId, name, hasEnded }: VolumeUser,
  host: VolumesHost,
): Promise<Refusal | undefined> {
  const use = { domainId, nodeName: host.nodeName, volume: name };
  await using directory = await ownDirectory(place);
  const others = (await usersBeside(directory, use)).filter((other) => !hasEnded(other.domainId));
  if (others.length > 0) {
    return waiting('VolumeInUse', `Volume "${place.name}" is in use by another guest of this node`);
  }
  await detachLoops(use, [join(place.root, VOLUMES_DIR)], host.run);
  return undefined;
}

async function hasLoops({ root, name }: OwnPlace, { nodeName }: VolumesHost): Promise<boolean> {
  const directory = await openBelow(root, [VOLUMES_DIR, name]);
  if (directory === undefined || directory === 'link') return false;
  await using found = directory;
  return (await loopUsers(found, nodeName)).length > 0;
}
