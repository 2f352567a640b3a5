/**
 * Decides the phase of one PersistentVolume, with Kubernetes' rules. Its provisioner deletes the data. Pure.
 *
 *   Available ──bound to a claim──► Bound ──claim deleted──► Released ──Delete: the provisioner deletes it
 *       ▲                             │                        └─────── Retain: an administrator decides
 *       └──claim has another volume───┘
 */
import { PROVISIONED_BY } from '#kube/volume-keys.ts';
import { patchVolume, unbindVolume } from '#engine/controllers/persistent-volume/bind.ts';
import { storageAnnotationOf } from '#kube/storage-class-name.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

export interface VolumePhaseWorld {
  readonly volume: Stored<PersistentVolume>;
  /** The claim that it refers to; undefined if the API confirmed that no claim with this name and uid exists. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly now: string;
}

type Phase = NonNullable<NonNullable<PersistentVolume['status']>['phase']>;

export function decideVolumePhase(world: VolumePhaseWorld): Plan {
  const { volume, claim } = world;
  const { claimRef, persistentVolumeReclaimPolicy } = volume.spec;
  if (!claimRef?.uid) return setPhase(world, 'Available');
  if (claim === undefined) return releaseVolume(world);
  if (claim.spec.volumeName === volume.metadata.name) return setPhase(world, 'Bound');
  // The claim's own reconcile binds the volume that is reserved for it.
  if (!claim.spec.volumeName) return EMPTY_PLAN;
  if (storageAnnotationOf(volume, PROVISIONED_BY) !== undefined && persistentVolumeReclaimPolicy === 'Delete') {
    return releaseVolume(world);
  }
  return { changes: unbindVolume(volume, 'the claim of the volume is bound to another volume') };
}

function releaseVolume(world: VolumePhaseWorld): Plan {
  const { persistentVolumeReclaimPolicy } = world.volume.spec;
  if (persistentVolumeReclaimPolicy !== 'Recycle') return setPhase(world, 'Released');
  const message = 'No recycler plugin found for the volume!';
  const plan = setPhase(world, 'Failed', message);
  return { ...plan, events: [{ type: 'Warning', reason: 'VolumeFailedRecycle', message }] };
}

function setPhase({ volume, now }: VolumePhaseWorld, phase: Phase, message?: string): Plan {
  const before = volume.status?.phase;
  // A failed volume stays Failed, so that an administrator sees it.
  if (before === phase || (before === 'Failed' && phase === 'Released')) return EMPTY_PLAN;
  const status = { phase, message: message ?? null, lastPhaseTransitionTime: now };
  return { changes: [{ ...patchVolume(volume, { status }, `the volume is ${phase}`), subresource: 'status' }] };
}
