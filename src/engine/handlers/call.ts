/** What every verb's handler gets: the parts of the engine, and one request for one kind. */
import type { Authorizer } from '#engine/auth/authorize.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import type { Admission } from '#engine/admission/admission.ts';
import { decodeStored } from '#engine/codec.ts';
import type { RequestNotes } from '#engine/notes.ts';
import type { ApiRequest } from '#engine/request.ts';
import type { Served } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { ResourceRoute } from '#engine/route.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import type { Representation } from '#engine/tables/negotiate-representation.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface EngineParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly admission: Admission;
  readonly authorizer: Authorizer;
  readonly tokens: TokenLookup;
}

export interface Call extends EngineParts {
  readonly request: ApiRequest;
  readonly route: ResourceRoute;
  readonly served: Served;
  readonly representation: Representation;
  readonly notes: RequestNotes;
}

/** The store's id of an object. */
export function entryId(resource: Resource, namespace: string, name: string): string {
  return resource.namespaced ? `${namespace}/${name}` : name;
}

/** What `entryId` joined. */
export function splitId(id: string): { namespace: string; name: string } {
  const slash = id.indexOf('/');
  return { namespace: slash < 0 ? '' : id.slice(0, slash), name: id.slice(slash + 1) };
}

/** The prefix of a namespace's ids; undefined = all. */
export function idPrefix(resource: Resource, namespace: string): string | undefined {
  return resource.namespaced && namespace !== '' ? `${namespace}/` : undefined;
}

/**
 * Where objects of the kind must be converted by somebody else, or many be brought into form: resolves once these may be
 * read. undefined = now. What reads entries asks this first; those that nobody prepared cannot be read.
 */
export function readable(call: Call, entries: readonly Entry[]): Promise<void> | undefined {
  const { stored } = call.served.resource;
  if (stored === undefined) return undefined;
  return stored.prepare(entries, () => call.request.signal);
}

/** The JSON of a stored object in the version that was asked for; `readable` was asked. */
export function shownBytes(entry: Entry, { stored }: Resource): Buffer {
  return stored === undefined ? entry.bytes : stored.bytes(entry);
}

/** A stored object in the version that was asked for: a fresh value that the caller may change. `readable` was asked. */
export function decodeEntry(entry: Entry, resource: Resource): KubeObject {
  return decodeStored(shownBytes(entry, resource));
}

/**
 * An object about to be stored carries the storage version, and has no fields but those of that version, with its
 * defaults. The metadata are the object's own where they can be: they get the revision.
 */
export function toStorageVersion({ served, request }: Call, object: KubeObject): KubeObject | Promise<KubeObject> {
  return served.resource.stored?.toStorage(object, () => request.signal) ?? object;
}
