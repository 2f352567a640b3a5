/** Reads an object that may not exist. For decisions that need more certainty: createLiveReader (runtime/live-reader.ts). */
import type { CallOptions, ObjectName, Reader } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

/** Returns an object, or undefined if it does not exist or its kind is not served. */
export async function getIfExists<T extends KubeObject>(
  client: Pick<Reader, 'get'>,
  type: ResourceType<T>,
  name: ObjectName,
  options?: CallOptions,
): Promise<Stored<T> | undefined> {
  try {
    return await client.get(type, name, options);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}
