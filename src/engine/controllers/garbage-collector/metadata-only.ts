/**
 * Objects as the collector keeps them: who they are, who owns them, what holds them. Nothing else of them stays in
 * memory, least of all what is in Secrets.
 *
 * The API is asked for whole objects all the same: inside this process their stored bytes are shared by all watchers,
 * while PartialObjectMetadata would be decoded and encoded for this one. Of each event only the beginning is parsed.
 */
import type { ListOptions, Reader, WatchOptions } from '#client/client.ts';
import { FOREGROUND_FINALIZER, ORPHAN_FINALIZER } from '#engine/registry/metadata.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';

export type MetadataReader = Pick<Reader, 'list' | 'watch'>;

export function metadataOnly({ apiVersion, kind, metadata }: Stored): Stored {
  const { name, namespace, uid, resourceVersion, creationTimestamp, deletionTimestamp } = metadata;
  const { ownerReferences, finalizers } = metadata;
  const identity = { name, namespace, uid, resourceVersion, creationTimestamp };
  return { apiVersion, kind, metadata: { ...identity, deletionTimestamp, ownerReferences, finalizers } };
}

/** The same reader, which forgets all but the metadata as soon as it has read an object. */
export function metadataReader(reader: MetadataReader): MetadataReader {
  return {
    async list<T extends KubeObject>(type: ResourceType<T>, options?: ListOptions) {
      const page = await reader.list(type, options);
      return { ...page, items: page.items.map((object) => metadataOnly(object) as Stored<T>) };
    },
    async *watch<T extends KubeObject>(type: ResourceType<T>, options?: WatchOptions) {
      for await (const event of reader.watch(type, { ...options, readLine: readMetadata })) {
        yield { type: event.type, object: metadataOnly(event.object) as Stored<T> };
      }
    },
  };
}

/** An event whose object begins with its metadata, as stored ones do. */
const EVENT_START = /^\{"type":"[A-Z]+","object":\{"apiVersion":"[^"\\]*","kind":"[^"\\]*","metadata":\{/;
/** The last of the metadata, and the larger part of most. In a string its quotes would be escaped. */
const MANAGED_FIELDS = ',"managedFields":[';

/**
 * A watch event without the owners of fields and whatever follows them. Where these words stand in the spec, it is cut
 * there: the metadata come before in any case.
 */
export function readMetadata(line: string): unknown {
  const end = line.indexOf(MANAGED_FIELDS);
  if (end < 0 || !EVENT_START.test(line)) return JSON.parse(line);
  try {
    return JSON.parse(`${line.slice(0, end)}}}}`);
  } catch {
    return JSON.parse(line);
  }
}

export const isBeingDeleted = ({ metadata }: KubeObject) => metadata.deletionTimestamp !== undefined;

/** In foreground deletion: it stays until those of its dependents are gone that block it. */
export const isInForegroundDeletion = (object: KubeObject) => isDeletedWith(object, FOREGROUND_FINALIZER);

/** Its dependents are to be let go before it goes. */
export const isOrphaning = (object: KubeObject) => isDeletedWith(object, ORPHAN_FINALIZER);

function isDeletedWith(object: KubeObject, finalizer: string): boolean {
  return isBeingDeleted(object) && (object.metadata.finalizers?.includes(finalizer) ?? false);
}
