/** Writes of the node agent that must not overwrite those of others. */
import type { Writer } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

interface PatchParts {
  readonly client: Writer;
  readonly signal: AbortSignal;
}

/** Removes a finalizer of the node agent from an object, and changes nothing else. */
export async function removeNodeFinalizer<T extends KubeObject>(
  type: ResourceType<T>,
  object: Stored<T>,
  finalizer: string,
  parts: PatchParts,
): Promise<void> {
  const { finalizers = [] } = object.metadata;
  const kept = finalizers.filter((name) => name !== finalizer);
  if (kept.length === finalizers.length) return;
  const path = '/metadata/finalizers';
  const removal = [
    { op: 'test', path, value: finalizers },
    { op: 'replace', path, value: kept },
  ];
  await patchIfUnchanged(type, object, removal, parts);
}

/**
 * Applies the operations, which test what they change. Does nothing if the object is gone or was changed meanwhile: that
 * change queues the object again.
 */
export async function patchIfUnchanged<T extends KubeObject>(
  type: ResourceType<T>,
  { metadata: { name, uid } }: Stored<T>,
  operations: readonly object[],
  { client, signal }: PatchParts,
): Promise<void> {
  const body = [{ op: 'test', path: '/metadata/uid', value: uid }, ...operations];
  try {
    await client.patch(type, { name }, { type: 'json', body }, { signal });
  } catch (error) {
    if (!isApiError(error, 'NotFound') && !isApiError(error, 'Invalid') && !isApiError(error, 'Conflict')) throw error;
  }
}
