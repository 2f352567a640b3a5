/** Puts a finalizer on and takes it off: the change, or none where it is so already. Pure. */
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { PatchChange } from '#runtime/plan.ts';

export function holdBy(finalizer: string, type: ResourceType, object: Stored): PatchChange | undefined {
  const { finalizers = [] } = object.metadata;
  if (finalizers.includes(finalizer)) return undefined;
  return withFinalizers([...finalizers, finalizer], type, object, 'what belongs to it must not be left behind');
}

export function releaseFrom(
  finalizer: string,
  type: ResourceType,
  object: Stored,
  why: string,
): PatchChange | undefined {
  const { finalizers = [] } = object.metadata;
  if (!finalizers.includes(finalizer)) return undefined;
  return withFinalizers(
    finalizers.filter((other) => other !== finalizer),
    type,
    object,
    why,
  );
}

/** Only in the state that was seen: finalizers of others that come meanwhile must stay. */
function withFinalizers(finalizers: string[], type: ResourceType, { metadata }: Stored, why: string): PatchChange {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, finalizers } } } as const;
  return { do: 'patch', type, name: { name, namespace }, uid, patch, why };
}
