/**
 * Adds and removes a finalizer on an object that other components write often. The patch tests only the finalizers, so
 * that unrelated writes do not conflict; runtime/finalizer.ts tests the whole object. Pure.
 */
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

const PATH = '/metadata/finalizers';

export function addFinalizer(finalizer: string, type: ResourceType, object: Stored | undefined, why: string): Change[] {
  const finalizers = object?.metadata.finalizers;
  if (object === undefined || finalizers?.includes(finalizer) === true) return [];
  const guard = { op: 'test', path: PATH, value: finalizers ?? null };
  return patchFinalizers(
    type,
    object,
    [guard, { op: 'add', path: PATH, value: [...(finalizers ?? []), finalizer] }],
    why,
  );
}

export function removeFinalizer(
  finalizer: string,
  type: ResourceType,
  object: Stored | undefined,
  why: string,
): Change[] {
  const index = object?.metadata.finalizers?.indexOf(finalizer) ?? -1;
  if (object === undefined || index < 0) return [];
  const path = `${PATH}/${index}`;
  const guard = { op: 'test', path, value: finalizer };
  return patchFinalizers(type, object, [guard, { op: 'remove', path }], why);
}

function patchFinalizers(type: ResourceType, { metadata }: Stored, body: readonly object[], why: string): Change[] {
  const { namespace, name, uid } = metadata;
  return [{ do: 'patch', type, name: { namespace, name }, uid, patch: { type: 'json', body }, why }];
}
