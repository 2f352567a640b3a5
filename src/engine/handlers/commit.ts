/** The one place where handlers write: an object over what the store holds now, in the storage version. */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import { encodeStored } from '#engine/codec.ts';
import { toStorageVersion, type Call } from '#engine/handlers/call.ts';
import { storeFault } from '#engine/handlers/store-fault.ts';
import { MAX_OBJECT_BYTES } from '#engine/limits.ts';
import { RevisionConflictError, type Entry } from '#engine/store/store.ts';
import { tooLarge } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface Commit {
  readonly id: string;
  /** The revision that must be the latest now; 0 = must not exist. */
  readonly expected: number;
  readonly object: KubeObject;
  /** What admission was asked; its guards have the last word, in the same turn as the write. */
  readonly admitted: AdmissionAttributes;
  /** The object goes, and this was its last state. */
  readonly remove?: boolean;
  /** Who owns the fields was asked for: too large an object is not made smaller by forgetting it. */
  readonly owned?: boolean | undefined;
}

/** Resolves when durable; undefined = another write came first. */
export async function commit(
  call: Call,
  { id, expected, object, admitted, remove, owned = false }: Commit,
): Promise<Entry | undefined> {
  const { served, store, admission } = call;
  const converting = toStorageVersion(call, object);
  const stored = converting instanceof Promise ? await converting : converting;
  admission.guard(admitted);
  const encode = (revision: number) => bounded(stored, revision, owned);
  const write = { collection: served.resource.collection, id, expected, encode };
  try {
    const entry = await (remove === true ? store.delete(write) : store.put(write));
    // Who wrote it may show it, though it was stored in another form.
    object.metadata.resourceVersion = String(entry.revision);
    return entry;
  } catch (error) {
    if (error instanceof RevisionConflictError) return undefined;
    throw storeFault(error);
  }
}

/** Objects over the store's bound are refused, whichever verb made them that large; what is being deleted may always go. */
function bounded(stored: KubeObject, revision: number, owned: boolean): Buffer {
  const bytes = encodeStored(stored, revision);
  const { metadata } = stored;
  if (bytes.length <= MAX_OBJECT_BYTES || metadata.deletionTimestamp !== undefined) return bytes;
  if (metadata.managedFields !== undefined && !owned) {
    delete metadata.managedFields;
    return bounded(stored, revision, owned);
  }
  throw tooLarge(`Request entity too large: the object has ${bytes.length} bytes; the limit is ${MAX_OBJECT_BYTES}`);
}
