/**
 * Decides what the provisioner does for one of its volumes. It deletes a released volume unless the policy is Retain.
 * The object stays until the agent of its node has removed the data and the finalizer. If that node does not exist any
 * more, an Event says so and the user decides, because a node that comes back still has the data. A shared volume that
 * is not filled yet gets another node if its node is lost. The leftover copy on a lost node is given up. Pure.
 */
import {
  COPY_NODE_ANNOTATION,
  LEFTOVER_NODE_ANNOTATION,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { parseSnapshotHandle } from '#api/storage/snapshot-handle.ts';
import { NO_COPIER_RETRY_MS } from '#controllers/shared/local-storage/copy-node.ts';
import { isLocalVolume } from '#controllers/shared/local-storage/local-volume.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import type { Stored } from '#kube/meta.ts';
import { USE_RECHECK_MS } from '#runtime/live-use.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export interface LocalVolumeWorld {
  readonly volume: Stored<PersistentVolume>;
  /** True if the node that has the data exists, or if the volume is shared. */
  readonly dataNodeExists: boolean;
  /** True if the node with a leftover copy exists, or if there is no such copy. */
  readonly leftoverNodeExists: boolean;
  /** True if the node exists that fills the volume. */
  readonly copyNodeExists: boolean;
  /** A node that can copy data on shared storage. */
  readonly copier?: string;
  /** True if a snapshot of the volume is in progress; a volume that is to be deleted is checked live. */
  readonly isBeingSnapshotted: boolean;
}

export function decideLocalVolume(world: LocalVolumeWorld): Plan {
  const { volume, dataNodeExists, copyNodeExists, isBeingSnapshotted } = world;
  const { name, uid, deletionTimestamp } = volume.metadata;
  if (!isLocalVolume(volume)) return EMPTY_PLAN;
  if (!world.leftoverNodeExists) return giveUpLeftover(volume);
  if (deletionTimestamp !== undefined && !dataNodeExists) return reportLostNode(volume);
  if (!copyNodeExists && canFillAnywhere(volume)) return selectCopyNode(world);
  if (!isUnneeded(volume)) return EMPTY_PLAN;
  // A snapshot that is in progress must still be completed.
  if (isBeingSnapshotted) return { changes: [], requeueAfterMs: USE_RECHECK_MS };
  const why = `Deleted PersistentVolume ${name}: its claim was deleted, and the reclaim policy is Delete`;
  return { changes: [{ do: 'delete', type: PERSISTENT_VOLUMES, name: { name }, uid, why }] };
}

/** Reports whether the volume is to be deleted: its claim is gone, and its data is not retained. */
export function isUnneeded({ metadata, spec, status }: PersistentVolume): boolean {
  const isReleased = status?.phase === 'Released' && spec.persistentVolumeReclaimPolicy === 'Delete';
  return isReleased && metadata.deletionTimestamp === undefined;
}

/** Returns the node that has to remove the data of a volume under deletion, or undefined if there is none. */
export function awaitedDataNode({ metadata }: PersistentVolume): string | undefined {
  const { deletionTimestamp, finalizers = [], annotations } = metadata;
  const waits = deletionTimestamp !== undefined && finalizers.includes(VOLUME_DATA_FINALIZER);
  return waits ? annotations?.[VOLUME_NODE_ANNOTATION] : undefined;
}

/** Returns the node that has to remove a leftover copy. */
export function awaitedLeftoverNode({ metadata }: PersistentVolume): string | undefined {
  return metadata.annotations?.[LEFTOVER_NODE_ANNOTATION];
}

/** Returns the node that has to fill the volume, or undefined if it is filled or no node is selected yet. */
export function awaitedCopyNode({ metadata }: PersistentVolume): string | undefined {
  return metadata.finalizers?.includes(VOLUME_COPY_FINALIZER)
    ? metadata.annotations?.[COPY_NODE_ANNOTATION]
    : undefined;
}

/**
 * Reports whether any node can finish the filling of the volume: source and volume are shared, or the volume is under
 * deletion and only has to be cleaned up.
 */
export function canFillAnywhere({ metadata, spec }: PersistentVolume): boolean {
  const { finalizers = [], annotations, deletionTimestamp } = metadata;
  if (!finalizers.includes(VOLUME_COPY_FINALIZER) || annotations?.[VOLUME_NODE_ANNOTATION] !== undefined) return false;
  const place = parseSnapshotHandle(spec.csi?.volumeAttributes?.['snapshot'] ?? '');
  return deletionTimestamp !== undefined || place?.scope === 'shared';
}

function selectCopyNode({ volume, copier }: LocalVolumeWorld): Plan {
  if (copier === undefined) return { changes: [], requeueAfterMs: NO_COPIER_RETRY_MS };
  const { name, uid } = volume.metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [COPY_NODE_ANNOTATION]: copier } } } };
  const why = `the volume has no node that fills it; node ${copier} can`;
  return { changes: [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why }] };
}

/** Removes the annotation, which otherwise prevents migrations of the guest and the deletion of the volume. */
function giveUpLeftover(volume: Stored<PersistentVolume>): Plan {
  const { name, uid } = volume.metadata;
  const node = awaitedLeftoverNode(volume);
  const path = formatPointer(['metadata', 'annotations', LEFTOVER_NODE_ANNOTATION]);
  const body = [
    { op: 'test', path, value: node },
    { op: 'remove', path },
  ];
  const why =
    `Node ${node} does not exist any more: its leftover copy of the data is given up. ` +
    'If the node comes back, remove the copy by hand';
  const patch = { type: 'json' as const, body };
  return {
    changes: [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why, reason: 'LeftoverNodeGone' }],
  };
}

function reportLostNode(volume: Stored<PersistentVolume>): Plan {
  const node = awaitedDataNode(volume);
  if (node === undefined) return EMPTY_PLAN;
  const isCopying = volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) === true;
  const finalizersText = isCopying
    ? `finalizers ${VOLUME_COPY_FINALIZER} and ${VOLUME_DATA_FINALIZER}`
    : `finalizer ${VOLUME_DATA_FINALIZER}`;
  const message =
    `Cannot remove the data: node ${node}, which has them, does not exist any more. They are removed when it comes back; ` +
    `to give them up, remove the ${finalizersText} from this volume`;
  return { changes: [], events: [{ type: 'Warning', reason: 'VolumeNodeGone', message }] };
}
