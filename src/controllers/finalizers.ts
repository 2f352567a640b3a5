/**
 * Puts a finalizer on and takes it off an object that others write all the time: only its finalizers must be as they
 * were seen, not the whole object, as runtime/finalizer.ts wants it. Pure.
 */
import type { ResourceType, Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

const PATH = '/metadata/finalizers';

export function addFinalizer(finalizer: string, type: ResourceType, object: Stored | undefined, why: string): Change[] {
  const finalizers = object?.metadata.finalizers;
  if (object === undefined || finalizers?.includes(finalizer) === true) return [];
  const guard = { op: 'test', path: PATH, value: finalizers ?? null };
  return patching(type, object, [guard, { op: 'add', path: PATH, value: [...(finalizers ?? []), finalizer] }], why);
}

export function dropFinalizer(
  finalizer: string,
  type: ResourceType,
  object: Stored | undefined,
  why: string,
): Change[] {
  const index = object?.metadata.finalizers?.indexOf(finalizer) ?? -1;
  if (object === undefined || index < 0) return [];
  const path = `${PATH}/${index}`;
  const guard = { op: 'test', path, value: finalizer };
  return patching(type, object, [guard, { op: 'remove', path }], why);
}

function patching(type: ResourceType, { metadata }: Stored, body: readonly object[], why: string): Change[] {
  const { namespace, name, uid } = metadata;
  return [{ do: 'patch', type, name: { namespace, name }, uid, patch: { type: 'json', body }, why }];
}
