/**
 * The only place where handlers write to the store: replaces the current version of an object, in the storage version.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { NODES } from '#engine/auth/groups.ts';
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { toStorageVersion, type Call } from '#engine/handlers/call.ts';
import { MAX_OBJECT_BYTES } from '#engine/request/limits.ts';
import {
  RevisionConflictError,
  type Entry,
  StoreFullError,
  StoreOverloadedError,
  StoreUnavailableError,
} from '#engine/store/store.ts';
import { insufficientStorage, tooLarge, internalError, tooManyRequests, type ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

interface Commit {
  readonly id: string;
  /** The revision that must be the latest; 0 = the object must not exist. */
  readonly expected: number;
  readonly object: KubeObject;
  /** The attributes that admission saw. Its guards decide last, in the same turn as the write. */
  readonly admitted: AdmissionAttributes;
  /** True if the object is removed; it is then the last state. */
  readonly remove?: boolean;
  /** True if the caller relies on managedFields, so that they may not be dropped to make the object smaller. */
  readonly owned?: boolean | undefined;
}

/**
 * Reports whether a component of the cluster writes: a controller of this process, or a node. Deletions need their updates,
 * and a node that cannot renew its lease would lose its guests.
 */
function isOwnWrite({ request }: Call): boolean {
  return request.sourceIp === undefined || request.user.groups.includes(NODES);
}

/** Resolves when the write is durable, or to undefined if another write came first. */
export async function commitObject(
  call: Call,
  { id, expected, object, admitted, remove, owned = false }: Commit,
): Promise<Entry | undefined> {
  const { served, store, admission } = call;
  const converting = toStorageVersion(call, object);
  const stored = converting instanceof Promise ? await converting : converting;
  admission.guard(admitted);
  const encode = (revision: number) => encodeWithinLimit(stored, revision, owned);
  const { collection } = served.resource;
  const isUrgent = stored.metadata.deletionTimestamp !== undefined || (expected !== 0 && isOwnWrite(call));
  const write = { collection, id, expected, isUrgent, encode };
  try {
    const entry = await (remove === true ? store.delete(write) : store.put(write));
    // The caller may respond with this object, although it was stored in another form.
    object.metadata.resourceVersion = String(entry.revision);
    return entry;
  } catch (error) {
    if (error instanceof RevisionConflictError) return undefined;
    throw toApiError(error);
  }
}

/**
 * Encodes an object and rejects it if it exceeds the size limit, regardless of the verb. An object under deletion may
 * always be written.
 */
function encodeWithinLimit(stored: KubeObject, revision: number, owned: boolean): Buffer {
  const bytes = encodeStored(stored, revision);
  const { metadata } = stored;
  if (bytes.length <= MAX_OBJECT_BYTES || metadata.deletionTimestamp !== undefined) return bytes;
  if (metadata.managedFields !== undefined && !owned) {
    delete metadata.managedFields;
    return encodeWithinLimit(stored, revision, owned);
  }
  throw tooLarge(`Request entity too large: the object has ${bytes.length} bytes; the limit is ${MAX_OBJECT_BYTES}`);
}

/** Maps errors of the store to API errors. */
function toApiError(error: unknown): unknown {
  if (error instanceof StoreOverloadedError) return overloadedError(error);
  if (error instanceof StoreFullError) return insufficientStorage(error.message);
  if (error instanceof StoreUnavailableError) return internalError(error.message, error);
  return error;
}

function overloadedError(error: StoreOverloadedError): ApiError {
  return tooManyRequests(
    `the server has received too many requests and has asked us to try again later: ${error.message}`,
    1,
  );
}
