/** Reads an object from the server, for decisions that must not be based on an outdated cache. */
import type { ObjectName, Reader } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

/** Returns undefined if the object does not exist. */
export type LiveReader = <T extends KubeObject>(
  type: ResourceType<T>,
  name: ObjectName,
  options: { signal: AbortSignal },
) => Promise<Stored<T> | undefined>;

export function createLiveReader(client: Pick<Reader, 'get'>): LiveReader {
  return async (type, name, options) => {
    try {
      return await client.get(type, name, options);
    } catch (error) {
      // Without a name, it is the kind that is not served at the moment, which says nothing about the object.
      if (isApiError(error, 'NotFound') && error.details?.name === name.name) return undefined;
      throw error;
    }
  };
}
