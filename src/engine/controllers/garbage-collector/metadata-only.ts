/**
 * Reduces objects to the metadata that the collector needs: identity, owners and finalizers. Other data, such as the
 * content of Secrets, is not kept in memory.
 *
 * The collector nevertheless requests whole objects: within this process all watchers share their stored bytes, while
 * PartialObjectMetadata would have to be decoded and encoded for the collector. Only the beginning of each event is parsed.
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

/** Wraps a reader so that it returns only the metadata of objects. */
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

/** Matches an event whose object begins with its metadata, as stored objects do. */
const EVENT_START = /^\{"type":"[A-Z]+","object":\{"apiVersion":"[^"\\]*","kind":"[^"\\]*","metadata":\{/;
/** The start of managedFields, the last and usually largest part of the metadata. Inside a string its quotes are escaped. */
const MANAGED_FIELDS = ',"managedFields":[';

/**
 * Parses a watch event without managedFields and everything after them. If only the spec contains that text, the event is
 * cut there, which is correct as well, because the metadata comes before the spec.
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

/** Reports whether the object is in foreground deletion: it is removed after the dependents that block it. */
export const isInForegroundDeletion = (object: KubeObject) => isDeletedWith(object, FOREGROUND_FINALIZER);

/** Reports whether the object is under deletion and its dependents are to be orphaned first. */
export const isOrphaning = (object: KubeObject) => isDeletedWith(object, ORPHAN_FINALIZER);

function isDeletedWith(object: KubeObject, finalizer: string): boolean {
  return isBeingDeleted(object) && (object.metadata.finalizers?.includes(finalizer) ?? false);
}
