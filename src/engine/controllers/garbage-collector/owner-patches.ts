/**
 * What the collector writes into objects. Merge patches with the revision that was looked at: every kind takes them,
 * and a change that came in between is a conflict instead of being overwritten.
 */
import type { OwnerReference, ResourceType, Stored } from '#kube/meta.ts';
import type { PatchChange } from '#runtime/plan.ts';

export interface CollectedObject {
  readonly type: ResourceType;
  readonly object: Stored;
}

/** Null where the list is empty: the field goes. */
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

export function removeFinalizer(found: CollectedObject, finalizer: string, why: string): PatchChange {
  const { finalizers = [] } = found.object.metadata;
  return patchMetadata(found, { finalizers: orNull(finalizers.filter((name) => name !== finalizer)) }, why);
}
