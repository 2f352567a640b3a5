/**
 * The patches that the collector applies to objects. They are merge patches, which every kind supports, with the observed
 * resourceVersion, so that a concurrent change causes a conflict instead of being overwritten.
 */
import type { OwnerReference, ResourceType, Stored } from '#kube/meta.ts';
import type { PatchChange } from '#runtime/plan.ts';

export interface CollectedObject {
  readonly type: ResourceType;
  readonly object: Stored;
}

/** Returns null for an empty list, which removes the field. */
const orNull = <T>(list: readonly T[]) => (list.length > 0 ? list : null);

function patchMetadata({ type, object }: CollectedObject, fields: object, why: string): PatchChange {
  const { name, namespace, uid, resourceVersion } = object.metadata;
  const body = { metadata: { resourceVersion, ...fields } };
  return { do: 'patch', type, name: { name, namespace }, uid, patch: { type: 'merge', body }, why };
}

export function keepOwners(
  found: CollectedObject,
  keep: (reference: OwnerReference) => boolean,
  why: string,
): PatchChange {
  const { ownerReferences = [] } = found.object.metadata;
  return patchMetadata(found, { ownerReferences: orNull(ownerReferences.filter(keep)) }, why);
}

export function unblockOwners(found: CollectedObject, unblock: (uid: string) => boolean, why: string): PatchChange {
  const { ownerReferences = [] } = found.object.metadata;
  const unblocked = ownerReferences.map((reference) =>
    unblock(reference.uid) ? { ...reference, blockOwnerDeletion: false } : reference,
  );
  return patchMetadata(found, { ownerReferences: unblocked }, why);
}

export function withoutFinalizer(found: CollectedObject, finalizer: string, why: string): PatchChange {
  const { finalizers = [] } = found.object.metadata;
  return patchMetadata(found, { finalizers: orNull(finalizers.filter((name) => name !== finalizer)) }, why);
}
