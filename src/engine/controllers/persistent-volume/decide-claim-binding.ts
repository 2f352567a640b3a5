/**
 * Decides the next step for one PersistentVolumeClaim, with the rules and messages of Kubernetes' binder. Pure.
 *
 *   Pending ──a volume fits or was created for it──► Bound ──its volume is deleted or has another claim──► Lost
 *      └─ waits for its first consumer, for a provisioner, or for a volume
 */
import { SELECTED_NODE, STORAGE_PROVISIONER } from '#kube/volume-keys.ts';
import type { EngineNode } from '#engine/controllers/kinds.ts';
import { bindClaimToVolume, BIND_COMPLETED, patchClaim } from '#engine/controllers/persistent-volume/bind.ts';
import { findVolume, isReservedFor, findMismatch } from '#engine/controllers/persistent-volume/match.ts';
import { lacksClass } from '#engine/controllers/persistent-volume/storage-class.ts';
import { classNameOf, storageAnnotationOf } from '#kube/storage-class-name.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

const PROVISIONER_ANNOTATIONS = [STORAGE_PROVISIONER, 'volume.beta.kubernetes.io/storage-provisioner'] as const;
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

export interface ClaimBindingWorld {
  readonly claim: Stored<PersistentVolumeClaim>;
  /** The volume in the claim's spec. */
  readonly volume?: Stored<PersistentVolume>;
  /** Unclaimed volumes of its class, and volumes that are reserved for it. */
  readonly candidates: readonly Stored<PersistentVolume>[];
  /** The storage class of the claim. */
  readonly storageClass?: Stored<StorageClass>;
  readonly defaultClass?: Stored<StorageClass>;
  /** The node that was selected for its first consumer. */
  readonly node?: EngineNode;
}

export function decideClaimBinding(world: ClaimBindingWorld): Plan {
  const { claim } = world;
  if (storageAnnotationOf(claim, BIND_COMPLETED) !== undefined) return decideBoundClaim(world);
  if (claim.metadata.deletionTimestamp !== undefined) return EMPTY_PLAN;
  return claim.spec.volumeName ? bindNamedVolume(world) : findOrProvision(world);
}

function decideBoundClaim({ claim, volume }: ClaimBindingWorld): Plan {
  if (!claim.spec.volumeName) {
    return markLost(
      claim,
      'ClaimLost',
      'Bound claim has lost reference to PersistentVolume. Data on the volume is lost!',
    );
  }
  if (volume === undefined) {
    return markLost(claim, 'ClaimLost', 'Bound claim has lost its PersistentVolume. Data on the volume is lost!');
  }
  const { claimRef } = volume.spec;
  if (claimRef === undefined || claimRef.uid === claim.metadata.uid)
    return { changes: bindClaimToVolume(claim, volume) };
  const message = 'Two claims are bound to the same volume, this one is bound incorrectly';
  return markLost(claim, 'ClaimMisbound', message);
}

function markLost(claim: ClaimBindingWorld['claim'], reason: string, message: string): Plan {
  if (claim.status?.phase === 'Lost') return EMPTY_PLAN;
  const body = { status: { phase: 'Lost', accessModes: null, capacity: null } };
  const change = { ...patchClaim(claim, body, message), subresource: 'status' };
  return { changes: [change], events: [{ type: 'Warning', reason, message }] };
}

function bindNamedVolume({ claim, volume }: ClaimBindingWorld): Plan {
  if (volume === undefined) return EMPTY_PLAN;
  const { name } = volume.metadata;
  if (volume.spec.claimRef !== undefined && !isReservedFor(volume, claim)) {
    return eventPlan('Warning', 'FailedBinding', `volume ${JSON.stringify(name)} already bound to a different claim.`);
  }
  const mismatch = volume.spec.claimRef === undefined ? findMismatch(volume, claim) : undefined;
  if (mismatch === undefined) return { changes: bindClaimToVolume(claim, volume) };
  return eventPlan('Warning', 'VolumeMismatch', `Cannot bind to requested volume ${JSON.stringify(name)}: ${mismatch}`);
}

function findOrProvision(world: ClaimBindingWorld): Plan {
  const { claim, candidates, storageClass, defaultClass, node } = world;
  const waitsForConsumer = storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
  const volume = findVolume(claim, { candidates, waitsForConsumer, node });
  if (volume !== undefined) return { changes: bindClaimToVolume(claim, volume) };
  if (lacksClass(claim) && defaultClass !== undefined) {
    const body = { spec: { storageClassName: defaultClass.metadata.name } };
    return { changes: [patchClaim(claim, body, 'the claim names no storage class, so it gets the default')] };
  }
  if (waitsForConsumer && storageAnnotationOf(claim, SELECTED_NODE) === undefined) {
    return eventPlan('Normal', 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding');
  }
  if (classNameOf(claim) !== '') return provision(world);
  const message = 'no persistent volumes available for this claim and no storage class is set';
  return eventPlan('Normal', 'FailedBinding', message);
}

/** Annotates the claim with its provisioner, which then creates the volume. */
function provision({ claim, storageClass }: ClaimBindingWorld): Plan {
  if (storageClass === undefined) {
    const message = `storageclass.storage.k8s.io ${JSON.stringify(classNameOf(claim))} not found`;
    return eventPlan('Warning', 'ProvisioningFailed', message);
  }
  const { provisioner } = storageClass;
  if (provisioner === NO_PROVISIONER) return eventPlan('Warning', 'ProvisioningFailed', 'no volume plugin matched');
  const events = [provisioningEvent(provisioner)];
  if (PROVISIONER_ANNOTATIONS.every((key) => storageAnnotationOf(claim, key) === provisioner))
    return { changes: [], events };
  const annotations = Object.fromEntries(PROVISIONER_ANNOTATIONS.map((key) => [key, provisioner]));
  return {
    changes: [patchClaim(claim, { metadata: { annotations } }, `${provisioner} is to create the volume`)],
    events,
  };
}

function provisioningEvent(provisioner: string): EventNote {
  const message =
    `Waiting for a volume to be created either by the external provisioner '${provisioner}' ` +
    'or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is ' +
    'running and correctly registered.';
  return { type: 'Normal', reason: 'ExternalProvisioning', message };
}

function eventPlan(type: EventNote['type'], reason: string, message: string): Plan {
  return { changes: [], events: [{ type, reason, message }] };
}
