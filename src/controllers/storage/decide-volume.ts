/**
 * What the provisioner does about one of its volumes: deletes it when its claim let it go and it is not to be kept. The
 * object stays until the agent of the node has removed the data and taken its finalizer off. Where that node no longer
 * exists nobody does: it is said, and left to people, as a node that comes back brings the data with it. A copy into a
 * volume that every node reaches goes to another node when the one that was to make it is gone. A copy that a guest left
 * behind on a node that is gone is given up: it counts no more. Pure.
 */
import {
  COPY_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { parseSnapshotHandle } from '#api/snapshot-handle.ts';
import { NO_COPIER_RETRY_MS } from '#controllers/storage/copy-node.ts';
import { isOurs } from '#controllers/storage/local-volume.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import { formatPointer } from '#kube/json-pointer.ts';
import type { Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface VolumeWorld {
  readonly volume: Stored<PersistentVolume>;
  /** Whether the node that holds its data exists; true where every node reaches them. */
  readonly homeExists: boolean;
  /** Whether the node exists that is to remove a copy that counts no more; true where there is none. */
  readonly leftoverNodeExists: boolean;
  /** Whether the node exists that is to fill it. */
  readonly copyNodeExists: boolean;
  /** A node that can copy what every node reaches. */
  readonly copier?: string;
  /** A snapshot of it was asked for and is not complete. */
  readonly isBeingTaken: boolean;
}

export function decideVolume(world: VolumeWorld): Plan {
  const { volume, homeExists, copyNodeExists, isBeingTaken } = world;
  const { name, uid, deletionTimestamp } = volume.metadata;
  if (!isOurs(volume)) return NOTHING;
  if (!world.leftoverNodeExists) return giveUpLeftover(volume);
  if (deletionTimestamp !== undefined && !homeExists) return stranded(volume);
  if (!copyNodeExists && isFilledAnywhere(volume)) return copyElsewhere(world);
  const released = volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
  // Whoever took a snapshot and then let go of the claim wants the snapshot.
  if (!released || deletionTimestamp !== undefined || isBeingTaken) return NOTHING;
  const why = 'its claim is gone, and the reclaim policy is Delete';
  return { changes: [{ do: 'delete', type: PERSISTENT_VOLUMES, name: { name }, uid, why }] };
}

/** The node that holds the data of a volume that is to go; undefined for all others. */
export function awaitedHome({ metadata }: PersistentVolume): string | undefined {
  const { deletionTimestamp, finalizers = [], annotations } = metadata;
  const waits = deletionTimestamp !== undefined && finalizers.includes(VOLUME_DATA_FINALIZER);
  return waits ? annotations?.[VOLUME_NODE_ANNOTATION] : undefined;
}

/** The node that is to remove its copy. */
export function awaitedLeftover({ metadata }: PersistentVolume): string | undefined {
  return metadata.annotations?.[LEFTOVER_NODE_ANNOTATION];
}

/** The node that is to fill it; undefined where nothing is to be filled, or nobody is to do it yet. */
export function awaitedCopyNode({ metadata }: PersistentVolume): string | undefined {
  return metadata.finalizers?.includes(VOLUME_COPY_FINALIZER)
    ? metadata.annotations?.[COPY_NODE_ANNOTATION]
    : undefined;
}

/**
 * Whether any node can do what is left to do before the volume is filled. One that is to go is filled with nothing any
 * more.
 */
export function isFilledAnywhere({ metadata, spec }: PersistentVolume): boolean {
  const { finalizers = [], annotations, deletionTimestamp } = metadata;
  if (!finalizers.includes(VOLUME_COPY_FINALIZER) || annotations?.[VOLUME_NODE_ANNOTATION] !== undefined) return false;
  const place = parseSnapshotHandle(spec.csi?.volumeAttributes?.['snapshot'] ?? '');
  return deletionTimestamp !== undefined || place?.scope === 'shared';
}

function copyElsewhere({ volume, copier }: VolumeWorld): Plan {
  if (copier === undefined) return { changes: [], requeueAfterMs: NO_COPIER_RETRY_MS };
  const { name, uid } = volume.metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [COPY_NODE_ANNOTATION]: copier } } } };
  const why = `no node is there to fill it; ${copier} can`;
  return { changes: [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why }] };
}

/** As long as the note is there, neither does the guest move again nor can the volume go. */
function giveUpLeftover(volume: Stored<PersistentVolume>): Plan {
  const { name, uid } = volume.metadata;
  const node = awaitedLeftover(volume);
  const path = formatPointer(['metadata', 'annotations', LEFTOVER_NODE_ANNOTATION]);
  const body = [
    { op: 'test', path, value: node },
    { op: 'remove', path },
  ];
  const why =
    `Node ${node} no longer exists: the copy of the data that is left there, and counts no more, is given up. ` +
    'Where the node comes back, remove it by hand';
  const patch = { type: 'json' as const, body };
  return {
    changes: [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why, reason: 'LeftoverNodeGone' }],
  };
}

function stranded(volume: Stored<PersistentVolume>): Plan {
  const node = awaitedHome(volume);
  if (node === undefined) return NOTHING;
  const copying = volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) === true;
  const which = copying
    ? `finalizers ${VOLUME_COPY_FINALIZER} and ${VOLUME_DATA_FINALIZER}`
    : `finalizer ${VOLUME_DATA_FINALIZER}`;
  const message =
    `Cannot remove the data: node ${node} that holds them no longer exists. They are removed when it comes back; ` +
    `to give them up, take the ${which} off this volume`;
  return { changes: [], events: [{ type: 'Warning', reason: 'VolumeNodeGone', message }] };
}
