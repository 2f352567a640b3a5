/**
 * Decides what happens to one VolumeSnapshotContent of our driver; the agent of its node makes the copy. A shared
 * content whose node is lost gets another one. A content whose VolumeSnapshot was removed by force is deleted. If the
 * node of node-local data does not exist any more, an Event says so and the user decides. Pure.
 */
import { LOCAL_DRIVER, SNAPSHOT_DATA_FINALIZER, SNAPSHOT_NODE_ANNOTATION } from '#api/names.ts';
import { parseSnapshotHandle } from '#api/storage/snapshot-handle.ts';
import { NO_COPIER_RETRY_MS } from '#controllers/shared/local-storage/copy-node.ts';
import { handleOf } from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export interface VolumeSnapshotContentWorld {
  readonly content: Stored<VolumeSnapshotContent>;
  /** False if a live read confirmed that the VolumeSnapshot of the content does not exist. */
  readonly snapshotExists: boolean;
  /** The source volume. */
  readonly volume?: Stored<PersistentVolume>;
  /** True if the awaited node exists (awaitedNode). */
  readonly nodeExists: boolean;
  /** A node that can copy and remove data on shared storage. */
  readonly copier?: string;
}

export function decideVolumeSnapshotContent(world: VolumeSnapshotContentWorld): Plan {
  const { content, snapshotExists } = world;
  if (content.spec.driver !== LOCAL_DRIVER) return EMPTY_PLAN;
  const deleting = content.metadata.deletionTimestamp !== undefined;
  if (!deleting && !snapshotExists && content.spec.deletionPolicy === 'Delete') return deleteContent(content);
  if (!waitsForNode(content) || world.nodeExists) return EMPTY_PLAN;
  if (isShared(world)) return selectNode(world);
  return reportLostNode(content, deleting);
}

/** Reports whether there is something left to do for the node: the copy, or the removal of the data. */
export function waitsForNode({ metadata, spec, status }: VolumeSnapshotContent): boolean {
  // A content for existing data, created by a user, needs no copy, and its data is not removed.
  if (spec.source.volumeHandle === undefined) return false;
  if (metadata.deletionTimestamp !== undefined) return metadata.finalizers?.includes(SNAPSHOT_DATA_FINALIZER) === true;
  return status?.creationTime === undefined;
}

/** Returns the node for which the content waits, or undefined if it waits for none or none is selected yet. */
export function awaitedNode(content: VolumeSnapshotContent): string | undefined {
  return waitsForNode(content) ? content.metadata.annotations?.[SNAPSHOT_NODE_ANNOTATION] : undefined;
}

/** Reports whether the data is on shared storage; false if that is unknown. */
function isShared({ content, volume }: VolumeSnapshotContentWorld): boolean {
  const handle = handleOf(content);
  if (handle !== undefined) return parseSnapshotHandle(handle)?.scope === 'shared';
  return volume?.spec.csi?.volumeAttributes?.['scope'] === 'shared';
}

function selectNode({ content, copier }: VolumeSnapshotContentWorld): Plan {
  if (copier === undefined) return { changes: [], requeueAfterMs: NO_COPIER_RETRY_MS };
  const { name, uid } = content.metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SNAPSHOT_NODE_ANNOTATION]: copier } } } };
  const why = `the content has no node; node ${copier} can access the data`;
  return { changes: [{ do: 'patch', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, patch, why }] };
}

function deleteContent({ metadata: { name, uid } }: Stored<VolumeSnapshotContent>): Plan {
  const why = `Deleted VolumeSnapshotContent ${name}: its VolumeSnapshot was deleted, and the deletion policy is Delete`;
  return { changes: [{ do: 'delete', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, why }] };
}

function reportLostNode(content: Stored<VolumeSnapshotContent>, deleting: boolean): Plan {
  const node = awaitedNode(content);
  if (node === undefined) return EMPTY_PLAN;
  const message = deleting
    ? `Cannot remove the data: node ${node}, which has them, does not exist any more. They are removed when it comes back; ` +
      `to give them up, remove the finalizer ${SNAPSHOT_DATA_FINALIZER} from this content`
    : `Cannot take the snapshot: node ${node}, which has the volume, does not exist any more. ` +
      'The snapshot is taken when it comes back';
  return { changes: [], events: [{ type: 'Warning', reason: 'SnapshotNodeGone', message }] };
}
