/**
 * Read-modify-write of one object, shared by update, patch and the subresources:
 *
 *   latest ──► change ──► shape ──► keep what is not the caller's ──► owners ──► mutate ──► validate ──► admit ──► write
 *      ▲                                                                                                           │
 *      └─────────────────────── somebody was faster, and the caller did not insist on a revision ◄─────────────────┘
 *
 * A result equal to what is stored writes nothing, and is answered once what it equals is durable. An object under
 * deletion whose last holder let go is removed.
 */
import type { AdmissionAttributes, GroupVersionKind } from '#engine/admission/admission.ts';
import { admissionAttributes } from '#engine/handlers/admit.ts';
import { decodeEntry, entryId, readable, type Call } from '#engine/handlers/call.ts';
import { commit } from '#engine/handlers/commit.ts';
import { keepServerFields, keepSubresourceFields } from '#engine/handlers/keep-fields.ts';
import { undecodable } from '#engine/handlers/read-object.ts';
import { copyOf, isSameMetadata, keepManagedFields, trackWrite } from '#engine/handlers/own-fields.ts';
import { respondEntry, respondObject } from '#engine/handlers/respond.ts';
import { shapeObject, validateChanged } from '#engine/handlers/shape.ts';
import { MAX_WRITE_ATTEMPTS } from '#engine/limits.ts';
import { missingResourceVersion, type WriteOptions } from '#engine/options.ts';
import type { ApiResponse } from '#engine/request.ts';
import type { Entry } from '#engine/store/store.ts';
import { ApiError, badRequest, conflict, invalid, MODIFIED, notFound } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface Modification extends WriteOptions {
  /** The wanted object, made from a fresh copy of the current one that it may keep. */
  change(current: KubeObject): KubeObject;
  /** The change says itself who owns which fields. */
  readonly owned?: boolean;
  /** The change may look at the managedFields; to others the copy does not show them. */
  readonly readsOwners?: boolean;
  /** PUT of a custom resource must say which revision it replaces. */
  readonly needsRevision: boolean;
  /** The error for a wanted object that is not of its kind; a patch is refused in other words than an object. */
  undecodable?(current: KubeObject, why: string): ApiError;
  /** What stands for the object on this path, where that is not the object itself. */
  readonly shownAs?: ShownAs;
}

/** Scale, for instance: admission sees and changes it instead of the object. */
export interface ShownAs {
  readonly kind: GroupVersionKind;
  of(object: KubeObject): KubeObject;
  /** The object, changed as what stands for it was. */
  into(object: KubeObject, shown: KubeObject): KubeObject;
}

/** What came of it: the stored entry, or for a dry run what would have been stored. */
export type Modified = { readonly warnings: readonly string[] } & (
  | { readonly entry: Entry; readonly object?: undefined }
  | { readonly entry?: undefined; readonly object: KubeObject }
);

export async function modify(call: Call, modification: Modification): Promise<ApiResponse> {
  const { entry, object, warnings } = await modifyObject(call, modification);
  const answer = { status: 200, warnings };
  return entry === undefined ? respondObject(call, object, answer) : respondEntry(call, entry, answer);
}

export async function modifyObject(call: Call, modification: Modification): Promise<Modified> {
  const { resource } = call.served;
  const { name, namespace } = call.route;
  const id = entryId(resource, namespace, name);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const entry = call.store.latest(resource.collection, id);
    if (entry === undefined) throw notFound(resource, name);
    try {
      const done = await attemptOnce(call, modification, entry);
      if (done !== undefined) return done;
    } catch (error) {
      if (!isRefusal(error) || (await call.store.settled(entry))) throw error;
    }
  }
  throw conflict(resource, name, MODIFIED);
}

/**
 * Told only when what it refers to is on disk: who reads again after a conflict must see what it was in conflict with. A
 * write that failed meanwhile refuses nothing.
 */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.code < 500;
}

/** undefined = another write came first, or one that this built on has failed. */
async function attemptOnce(call: Call, modification: Modification, entry: Entry): Promise<Modified | undefined> {
  const { resource } = call.served;
  const { shownAs } = modification;
  const reading = readable(call, [entry]);
  if (reading !== undefined) await reading;
  const old = decodeEntry(entry, resource);
  const copy = copyOf(old, { withOwners: modification.owned === true || modification.readsOwners === true });
  let next = modification.change(copy);
  assertSame(call, next, old, modification.needsRevision);
  const refuse = (why: string) => modification.undecodable?.(old, why) ?? undecodable(call, why);
  const resetsOwners = isEmptyList(next.metadata.managedFields);
  const warnings = shapeObject(call, next, modification.fieldValidation, refuse);
  // Shaped, an empty list is as good as none; of owners it means something.
  if (resetsOwners) next.metadata.managedFields = [];
  keepServerFields(next, old);
  keepSubresourceFields(call, next, old);
  // Before others change it: what they do belongs to nobody, as in Kubernetes.
  if (modification.owned !== true) {
    // A patch leaves in the copy what it does not touch, so that comparing with it takes one look.
    trackWrite(call, next, { old, base: next === copy ? old : copy }, modification.fieldManager);
  }
  const { managedFields } = next.metadata;
  const shown = shownAs?.of(next) ?? next;
  const mutating = call.admission.mutate(asked(call, modification, shown, old));
  if (mutating instanceof Promise) await mutating;
  if (shownAs !== undefined) next = shownAs.into(next, shown);
  // Whoever changed it may write no more than the client could.
  keepServerFields(next, old);
  keepSubresourceFields(call, next, old);
  keepManagedFields(call, next, managedFields);
  if (call.route.subresource === '') resource.strategy.prepareForUpdate?.(next, old);
  const sameWish = isSameWish(call, next, old);
  if (resource.generation) next.metadata.generation = (old.metadata.generation ?? 1) + (sameWish ? 0 : 1);
  const checking = validateChanged(call, next, old);
  if (checking instanceof Promise) await checking;
  const admitted = asked(call, modification, shownAs?.of(next) ?? next, old);
  const validating = call.admission.validate(admitted);
  if (validating instanceof Promise) await validating;
  const isSame = sameWish && deepEqual(next['status'], old['status']) && isSameMetadata(next.metadata, old.metadata);
  // What lies there in the form of another time is written anew.
  if (isSame && resource.stored?.isCurrent(entry) !== false) {
    return (await call.store.settled(entry)) ? { entry, warnings } : undefined;
  }
  warnings.push(...(resource.strategy.warnings?.(next) ?? []));
  if (modification.dryRun) {
    call.admission.guard(admitted);
    return { object: next, warnings };
  }
  const { id, revision: expected } = entry;
  const remove = isReleased(call, next);
  const written = await commit(call, { id, expected, object: next, admitted, remove, owned: modification.owned });
  return written && { entry: written, warnings };
}

function asked(call: Call, wanted: Modification, object: KubeObject, old: KubeObject): AdmissionAttributes {
  const { shownAs, dryRun, sent } = wanted;
  const oldObject = shownAs?.of(old) ?? old;
  const { name } = call.route;
  return admissionAttributes(call, {
    operation: 'UPDATE',
    name,
    object,
    oldObject,
    dryRun,
    options: sent,
    kind: shownAs?.kind,
  });
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** The object must be the one on the path, and the one that the caller saw. */
function assertSame(call: Call, next: KubeObject, old: KubeObject, needsRevision: boolean): void {
  const { resource } = call.served;
  const { name } = call.route;
  const { metadata } = next;
  if (!metadata.name) metadata.name = name;
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${textOf(metadata.name)}) does not match the name on the URL (${name})`);
  }
  if (needsRevision && metadata.uid && metadata.uid !== old.metadata.uid) {
    const key = `/registry/${resource.group === '' ? '' : `${resource.group}/`}${resource.plural}/${call.route.namespace === '' ? '' : `${call.route.namespace}/`}${name}`;
    const why = `StorageError: invalid object, Code: 4, Key: ${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${textOf(metadata.uid)}, UID in object meta: ${old.metadata.uid}`;
    throw conflict(resource, name, why);
  }
  if (!metadata.resourceVersion) {
    // Kubernetes names the resource, not the kind, in this one.
    if (needsRevision && (!resource.builtIn || resource.needsRevision === true)) {
      throw invalid({ group: resource.group, kind: resource.plural }, name, [missingResourceVersion()]);
    }
    metadata.resourceVersion = old.metadata.resourceVersion;
  }
  if (metadata.resourceVersion !== old.metadata.resourceVersion) throw conflict(resource, name, MODIFIED);
}

/** Of a field whose type has not been checked yet: what has a toString of its own cannot be made a text. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Everything but metadata and status: what the generation counts. Without a status subresource the status is wished, too. */
function isSameWish(call: Call, next: KubeObject, old: KubeObject): boolean {
  const { metadata: _m, status, ...wished } = next;
  const { metadata: _om, status: before, ...wishedBefore } = old;
  return deepEqual(wished, wishedBefore) && (call.served.resource.status || deepEqual(status, before));
}

/** Whether an object under deletion is held by nothing any more. */
export function isReleased(call: Call, object: KubeObject): boolean {
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined) return false;
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0 || (metadata.finalizers?.length ?? 0) > 0) return false;
  return !call.served.resource.strategy.heldBack?.(object);
}
