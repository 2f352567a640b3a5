/**
 * Decides the reclaim policy of a volume whose claim is being deleted. A deletion that was accepted cannot be cancelled,
 * and no finalizer can be added to the claim any more. So the volume is retained while a protected VM has the claim, and
 * gets its own policy back if the protection ends before the claim is gone. A claim that a restore or a migration has
 * replaced is not retained. Pure.
 */
import { RECLAIM_POLICY_ANNOTATION } from '#api/names.ts';
import { replacedBy } from '#api/storage/persistent-state.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export interface RetentionWorld {
  readonly volume: Stored<PersistentVolume>;
  /** The claim to which the volume is bound. Without it the volume keeps its policy. */
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The protected VMs that need the claim. */
  readonly vms: readonly string[];
}

const RETAIN = 'Retain';
const RETAINED_REASON = 'VolumeRetained';

export function decideRetention({ volume, claim, vms }: RetentionWorld): Plan {
  const own = volume.metadata.annotations?.[RECLAIM_POLICY_ANNOTATION];
  const policy = volume.spec.persistentVolumeReclaimPolicy ?? RETAIN;
  const isRetained = isDeleting(claim) && vms.length > 0 && replacedBy(claim) === undefined;
  if (isRetained && policy !== RETAIN) {
    const why =
      `Set the reclaim policy to Retain: PersistentVolumeClaim ${claim.metadata.namespace}/${claim.metadata.name} is ` +
      `being deleted, and is a disk of the protected VirtualMachine ${vms.join(', ')}`;
    return setPolicy(volume, { policy: RETAIN, own: policy, why });
  }
  if (isRetained || own === undefined) return EMPTY_PLAN;
  const why = `Set the reclaim policy to ${own} again: no protected VM needs the volume`;
  return setPolicy(volume, { policy: own, own: null, why });
}

interface PolicyChange {
  readonly policy: string;
  /** The value of the annotation; null removes it. */
  readonly own: string | null;
  readonly why: string;
}

function setPolicy({ metadata }: Stored<PersistentVolume>, { policy, own, why }: PolicyChange): Plan {
  const { name, uid, resourceVersion } = metadata;
  const annotations = { [RECLAIM_POLICY_ANNOTATION]: own };
  const body = { metadata: { resourceVersion, annotations }, spec: { persistentVolumeReclaimPolicy: policy } };
  const patch = { type: 'merge', body } as const;
  return {
    changes: [{ do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch, why, reason: RETAINED_REASON }],
  };
}
