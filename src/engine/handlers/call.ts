/**
 * The types of handlers, and their input: the parts of the engine, and one request for one kind.
 *
 * Subresources that are not part of an object (pods/log, pods/eviction, serviceaccounts/token) are tables of handlers by
 * verb; core.ts lists them, and the kind names them in `extraSubresources` for discovery.
 */
import type { Authorizer } from '#engine/auth/authorize.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import type { Admission } from '#engine/admission/admission.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Pace } from '#engine/handlers/pace.ts';
import type { RequestNotes } from '#engine/handlers/request-notes.ts';
import type { ApiRequest, ApiResponse } from '#engine/request/request.ts';
import type { Served } from '#engine/registry/registry.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { ResourceRoute } from '#engine/request/route.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import type { Representation } from '#engine/tables/negotiate-representation.ts';
import type { Clock } from '#lib/clock.ts';
import type { FairTurns } from '#lib/fair-turns.ts';
import type { Log } from '#lib/log.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface EngineParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Log;
  readonly admission: Admission;
  readonly authorizer: Authorizer;
  readonly tokens: TokenLookup;
  readonly turns: FairTurns;
}

export interface Call extends EngineParts {
  readonly request: ApiRequest;
  readonly route: ResourceRoute;
  readonly served: Served;
  readonly representation: Representation;
  readonly notes: RequestNotes;
  readonly pace: Pace;
}

/**
 * Prepares entries for reading: resolves when a webhook has converted them, or when many of them have been converted.
 * Returns undefined if they can be read at once. Must be called before entries are read.
 */
export function prepareEntries(call: Call, entries: readonly Entry[]): Promise<void> | undefined {
  const { stored } = call.served.resource;
  if (stored === undefined) return undefined;
  return stored.prepare(entries, () => call.request.signal);
}

/** Returns the JSON of a stored object in the requested version. Requires prepareEntries. */
export function servedBytes(entry: Entry, { stored }: Resource): Buffer {
  return stored === undefined ? entry.bytes : stored.bytes(entry);
}

/**
 * Returns a stored object in the requested version, as a new value that the caller may modify. Requires prepareEntries.
 */
export function decodeEntry(entry: Entry, resource: Resource): KubeObject {
  return decodeStored(servedBytes(entry, resource));
}

/**
 * Converts an object to the storage version: only the fields of that version, with its defaults. Shares the metadata if
 * possible, because they get the revision.
 */
export function toStorageVersion({ served, request }: Call, object: KubeObject): KubeObject | Promise<KubeObject> {
  return served.resource.stored?.toStorage(object, () => request.signal) ?? object;
}

export type Handler = (call: Call) => ApiResponse | Promise<ApiResponse>;

/** Handlers by the verb of the request: get, create, update, patch, delete. */
export type SubresourceHandlers = Readonly<Partial<Record<string, Handler>>>;

/** Handlers by name, such as `pods/eviction`. */
export type Subresources = Readonly<Record<string, SubresourceHandlers>>;
