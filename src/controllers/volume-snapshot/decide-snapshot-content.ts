/**
 * What is done about one VolumeSnapshotContent of ours besides the copy, which the agent of its node makes: it gets a
 * node that exists where any will do, and goes when its VolumeSnapshot went without it. Where the node that holds the
 * data is gone nobody copies or removes them: that is said, and left to people. Pure.
 */
import { LOCAL_DRIVER, SNAPSHOT_DATA_FINALIZER, SNAPSHOT_NODE_ANNOTATION } from '#api/names.ts';
import { parseSnapshotHandle } from '#api/snapshot-handle.ts';
import { NO_COPIER_RETRY_MS } from '#controllers/storage/copy-node.ts';
import { handleOf } from '#controllers/volume-snapshot/snapshot-world.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface ContentWorld {
  readonly content: Stored<VolumeSnapshotContent>;
  /** False only when the very VolumeSnapshot that it refers to is gone, also by a live look. */
  readonly snapshotExists: boolean;
  /** What it is taken of. */
  readonly volume?: Stored<PersistentVolume>;
  /** Whether the node exists that the content waits for (awaitedNode). */
  readonly nodeExists: boolean;
  /** A node that can copy and remove what every node reaches. */
  readonly copier?: string;
}

export function decideSnapshotContent(world: ContentWorld): Plan {
  const { content, snapshotExists } = world;
  if (content.spec.driver !== LOCAL_DRIVER) return NOTHING;
  const deleting = content.metadata.deletionTimestamp !== undefined;
  if (!deleting && !snapshotExists && content.spec.deletionPolicy === 'Delete') return removed(content);
  if (!isAwaited(content) || world.nodeExists) return NOTHING;
  if (isAnywhere(world)) return placed(world);
  return stranded(content, deleting);
}

/** Reports whether there is something left to do for the node: the copy, or the removal of the data. */
export function isAwaited({ metadata, spec, status }: VolumeSnapshotContent): boolean {
  // Whoever says by hand where data are asks for no copy, and nobody looks after them.
  if (spec.source.volumeHandle === undefined) return false;
  if (metadata.deletionTimestamp !== undefined) return metadata.finalizers?.includes(SNAPSHOT_DATA_FINALIZER) === true;
  return status?.creationTime === undefined;
}

/** Who is waited for; undefined where that is not known yet. */
export function awaitedNode(content: VolumeSnapshotContent): string | undefined {
  return isAwaited(content) ? content.metadata.annotations?.[SNAPSHOT_NODE_ANNOTATION] : undefined;
}

/** Whether every node reaches the data; where nothing says so, one does. */
function isAnywhere({ content, volume }: ContentWorld): boolean {
  const handle = handleOf(content);
  if (handle !== undefined) return parseSnapshotHandle(handle)?.scope === 'shared';
  return volume?.spec.csi?.volumeAttributes?.['scope'] === 'shared';
}

function placed({ content, copier }: ContentWorld): Plan {
  if (copier === undefined) return { changes: [], requeueAfterMs: NO_COPIER_RETRY_MS };
  const { name, uid } = content.metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations: { [SNAPSHOT_NODE_ANNOTATION]: copier } } } };
  const why = `no node is there for its data; ${copier} reaches them`;
  return { changes: [{ do: 'patch', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, patch, why }] };
}

function removed({ metadata: { name, uid } }: Stored<VolumeSnapshotContent>): Plan {
  const why = 'its VolumeSnapshot is gone, and the deletion policy is Delete';
  return { changes: [{ do: 'delete', type: VOLUME_SNAPSHOT_CONTENTS, name: { name }, uid, why }] };
}

function stranded(content: Stored<VolumeSnapshotContent>, deleting: boolean): Plan {
  const node = awaitedNode(content);
  if (node === undefined) return NOTHING;
  const message = deleting
    ? `Cannot remove the data: node ${node} that holds them no longer exists. They are removed when it comes back; ` +
      `to give them up, take the finalizer ${SNAPSHOT_DATA_FINALIZER} off this content`
    : `Cannot take the snapshot: node ${node} that holds the volume no longer exists. It is taken when it comes back`;
  return { changes: [], events: [{ type: 'Warning', reason: 'SnapshotNodeGone', message }] };
}
