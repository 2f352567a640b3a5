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
import { isRecord, type KubeObject } from '#kube/meta.ts';

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

/** More than any status, lease or finalizer of a node needs. */
const MAX_URGENT_NODE_BYTES = 64 * 1024;

/**
 * Reports whether a write must succeed while space is scarce: a deletion, an update that removes a finalizer of an object
 * under deletion, and updates of components of the cluster. Deletions need those, and a node that cannot renew its lease
 * would lose its guests. Nobody else can use up the reserve by writing the same object again and again.
 */
function isUrgentWrite(
  call: Call,
  { admitted, expected, remove }: Commit,
  stored: KubeObject,
  before?: Entry,
): boolean {
  const { operation, oldObject } = admitted;
  if (remove === true || operation === 'DELETE') return true;
  if (expected === 0) return false;
  const { isLocal, user } = call.request;
  if (isLocal === true) return true;
  const isNode = user.groups.includes(NODES);
  const isReleasing =
    stored.metadata.deletionTimestamp !== undefined && countFinalizers(stored) < countFinalizers(oldObject);
  if (!isNode && !isReleasing) return false;
  const { length } = encodeStored(stored, expected);
  return length <= (isNode ? MAX_URGENT_NODE_BYTES : (before?.bytes.length ?? 0) + MAX_GROWTH_BYTES);
}

/** The entry of a manager that removes a finalizer. */
const MAX_GROWTH_BYTES = 1024;

/** Includes those of namespaces, which are in their spec. */
function countFinalizers(object: KubeObject | undefined): number {
  const spec = isRecord(object?.['spec']) ? object['spec'] : {};
  const { finalizers } = spec;
  return (object?.metadata.finalizers?.length ?? 0) + (Array.isArray(finalizers) ? finalizers.length : 0);
}

/** Resolves when the write is durable, or to undefined if another write came first. */
export async function commitObject(call: Call, commit: Commit): Promise<Entry | undefined> {
  const { id, expected, object, admitted, remove, owned = false } = commit;
  const { served, store, admission } = call;
  const converting = toStorageVersion(call, object);
  const stored = converting instanceof Promise ? await converting : converting;
  admission.guard(admitted);
  const { collection } = served.resource;
  const before = store.latest(collection, id);
  const maxBytes = admitted.operation === 'DELETE' ? Infinity : Math.max(MAX_OBJECT_BYTES, heldBytes(stored, before));
  const encode = (revision: number) => encodeWithinLimit(stored, { revision, owned, maxBytes });
  const isUrgent = isUrgentWrite(call, commit, stored, before);
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

/** An object under deletion may keep its size, whatever the limit was when it was stored, so that it can be released. */
function heldBytes({ metadata }: KubeObject, before: Entry | undefined): number {
  return metadata.deletionTimestamp === undefined ? 0 : (before?.bytes.length ?? 0);
}

interface Encoding {
  readonly revision: number;
  readonly owned: boolean;
  readonly maxBytes: number;
}

/** Encodes an object and rejects it if it exceeds the size limit. */
function encodeWithinLimit(stored: KubeObject, encoding: Encoding): Buffer {
  const { revision, owned, maxBytes } = encoding;
  const bytes = encodeStored(stored, revision);
  const { metadata } = stored;
  if (bytes.length <= maxBytes) return bytes;
  if (metadata.managedFields !== undefined && !owned) {
    delete metadata.managedFields;
    return encodeWithinLimit(stored, encoding);
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
