/**
 * What the provisioner does about one of its volumes: deletes it when its claim let it go and it is not to be kept. The
 * object stays until the agent of the node has removed the data and taken its finalizer off. Where that node no longer
 * exists nobody does: it is said, and left to people, as a node that comes back brings the data with it. Pure.
 */
import { VOLUME_DATA_FINALIZER, VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { isOurs } from '#controllers/storage/local-volume.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface VolumeWorld {
  readonly volume: Stored<PersistentVolume>;
  /** Whether the node that holds its data exists; true where every node reaches them. */
  readonly homeExists: boolean;
}

export function decideVolume({ volume, homeExists }: VolumeWorld): Plan {
  const { name, uid, deletionTimestamp } = volume.metadata;
  if (!isOurs(volume)) return NOTHING;
  if (deletionTimestamp !== undefined) return homeExists ? NOTHING : stranded(volume);
  const released = volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
  if (!released) return NOTHING;
  const why = 'its claim is gone, and the reclaim policy is Delete';
  return { changes: [{ do: 'delete', type: PERSISTENT_VOLUMES, name: { name }, uid, why }] };
}

/** The node that holds the data of a volume that is to go; undefined for all others. */
export function awaitedHome({ metadata }: PersistentVolume): string | undefined {
  const { deletionTimestamp, finalizers = [], annotations } = metadata;
  const waits = deletionTimestamp !== undefined && finalizers.includes(VOLUME_DATA_FINALIZER);
  return waits ? annotations?.[VOLUME_NODE_ANNOTATION] : undefined;
}

function stranded(volume: Stored<PersistentVolume>): Plan {
  const node = awaitedHome(volume);
  if (node === undefined) return NOTHING;
  const message =
    `Cannot remove the data: node ${node} that holds them no longer exists. They are removed when it comes back; ` +
    `to give them up, take the finalizer ${VOLUME_DATA_FINALIZER} off this volume`;
  return { changes: [], events: [{ type: 'Warning', reason: 'VolumeNodeGone', message }] };
}
