/** What the provisioner does about one of its volumes: deletes it when its claim let it go and it is not to be kept. Pure. */
import { isOurs } from '#controllers/storage/local-volume.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

/** The object stays until the node agent has removed the data and taken its finalizer off. */
export function decideVolume(volume: Stored<PersistentVolume>): Plan {
  const { name, uid, deletionTimestamp } = volume.metadata;
  const released = volume.status?.phase === 'Released' && volume.spec.persistentVolumeReclaimPolicy === 'Delete';
  if (!released || deletionTimestamp !== undefined || !isOurs(volume)) return NOTHING;
  const why = 'its claim is gone, and the reclaim policy is Delete';
  return { changes: [{ do: 'delete', type: PERSISTENT_VOLUMES, name: { name }, uid, why }] };
}
