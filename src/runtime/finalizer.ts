/** Adds and removes a finalizer: returns the change, or undefined if nothing has to change. Pure. */
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { PatchChange } from '#runtime/plan.ts';

export function requireFinalizer(finalizer: string, type: ResourceType, object: Stored): PatchChange | undefined {
  const { finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return undefined;
  return setFinalizers([...finalizers, finalizer], type, object, 'its resources must be removed before it is deleted');
}

export function releaseFinalizer(
  finalizer: string,
  type: ResourceType,
  object: Stored,
  why: string,
): PatchChange | undefined {
  const { finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) return undefined;
  return setFinalizers(
    finalizers.filter((other) => other !== finalizer),
    type,
    object,
    why,
  );
}

/** Patches only the observed state, so that finalizers that are added in the meantime stay. */
function setFinalizers(finalizers: string[], type: ResourceType, { metadata }: Stored, why: string): PatchChange {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, finalizers } } } as const;
  return { do: 'patch', type, name: { name, namespace }, uid, patch, why };
}
