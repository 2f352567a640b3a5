/** Removes a finalizer of the node agent from an object, and changes nothing else. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

/** Does nothing if the object is gone or was changed meanwhile: that change queues the object again. */
export async function removeNodeFinalizer<T extends KubeObject>(
  type: ResourceType<T>,
  object: Stored<T>,
  finalizer: string,
  { client, signal }: { readonly client: Writer; readonly signal: AbortSignal },
): Promise<void> {
  const { name, uid, finalizers = [] } = object.metadata;
  const kept = finalizers.filter((name) => name !== finalizer);
  if (kept.length === finalizers.length) return;
  const body = [
    { op: 'test', path: '/metadata/uid', value: uid },
    { op: 'test', path: '/metadata/finalizers', value: finalizers },
    { op: 'replace', path: '/metadata/finalizers', value: kept },
  ];
  try {
    await client.patch(type, { name }, { type: 'json', body }, { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Invalid') && !isApiError(error, 'Conflict')) throw error;
  }
}
