/** Builds the patches that bind a claim and a volume to each other. Fields that are already set are not written. Pure. */
import { storageAnnotationOf } from '#kube/storage-class-name.ts';
import {
  PERSISTENT_VOLUME_CLAIMS,
  PERSISTENT_VOLUMES,
  type PersistentVolume,
  type PersistentVolumeClaim,
} from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, PatchChange } from '#runtime/plan.ts';

export const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';

type StoredVolume = Stored<PersistentVolume>;
type StoredClaim = Stored<PersistentVolumeClaim>;

/** Patches the volume first. After a crash in between, the volume is reserved for the claim, which then finds it. */
export function bindClaimToVolume(claim: StoredClaim, volume: StoredVolume): Change[] {
  return [...setClaimRef(volume, claim), ...setVolumeName(claim, volume), ...setBoundStatus(claim, volume)];
}

function setClaimRef(volume: StoredVolume, { apiVersion, kind, metadata }: StoredClaim): Change[] {
  const { claimRef } = volume.spec;
  if (claimRef?.uid === metadata.uid) return [];
  const { namespace, name, uid, resourceVersion } = metadata;
  const reference = { apiVersion, kind, namespace, name, uid, resourceVersion };
  // Without the annotation, a volume that an administrator reserved stays reserved when it is unbound.
  const annotations = claimRef === undefined ? { [BOUND_BY_CONTROLLER]: 'yes' } : undefined;
  const body = {
    metadata: { resourceVersion: volume.metadata.resourceVersion, ...(annotations ? { annotations } : {}) },
    spec: { claimRef: reference },
  };
  return [patchVolume(volume, body, `the volume is bound to claim ${namespace}/${name}`)];
}

function setVolumeName(claim: StoredClaim, volume: StoredVolume): Change[] {
  const named = claim.spec.volumeName === volume.metadata.name;
  const complete = storageAnnotationOf(claim, BIND_COMPLETED) !== undefined;
  if (named && complete) return [];
  const annotations = { [BIND_COMPLETED]: 'yes', ...(named ? {} : { [BOUND_BY_CONTROLLER]: 'yes' }) };
  const body = { metadata: { annotations }, spec: { volumeName: volume.metadata.name } };
  return [patchClaim(claim, body, `the claim is bound to volume ${volume.metadata.name}`)];
}

/** Writes the capacity only once. Afterwards the controller that expands the volume updates it. */
function setBoundStatus(claim: StoredClaim, { spec }: StoredVolume): Change[] {
  if (claim.status?.phase === 'Bound') return [];
  const storage = spec.capacity['storage'];
  const status = {
    phase: 'Bound',
    accessModes: spec.accessModes,
    ...(storage === undefined ? {} : { capacity: { storage } }),
  };
  return [{ ...patchClaim(claim, { status }, 'the claim is bound'), subresource: 'status' }];
}

/** Unbinds a volume. A volume that an administrator reserved stays reserved for the name of the claim. */
export function unbindVolume(volume: StoredVolume, why: string): Change[] {
  const boundByController = storageAnnotationOf(volume, BOUND_BY_CONTROLLER) !== undefined;
  const body = boundByController
    ? { metadata: { annotations: { [BOUND_BY_CONTROLLER]: null } }, spec: { claimRef: null } }
    : { spec: { claimRef: { uid: null, resourceVersion: null } } };
  return [patchVolume(volume, body, why)];
}

export function patchVolume({ metadata: { name, uid } }: StoredVolume, body: object, why: string): PatchChange {
  return { do: 'patch', type: PERSISTENT_VOLUMES, name: { name }, uid, patch: { type: 'merge', body }, why };
}

export function patchClaim({ metadata }: StoredClaim, body: object, why: string): PatchChange {
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body };
  return { do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, patch, why };
}
