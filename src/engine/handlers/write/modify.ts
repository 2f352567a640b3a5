/**
 * Read-modify-write of one object, shared by update, patch and the subresources:
 *
 *   latest ──► change ──► shape ──► restore protected fields ──► managers ──► mutate ──► validate ──► admit ──► write
 *      ▲                                                                                                         │
 *      └────────────────── another write came first, and the caller did not require a revision ◄─────────────────┘
 *
 * A result equal to the stored object writes nothing; the response waits until that object is durable. An object under
 * deletion is removed when its last finalizer is removed.
 */
import type { AdmissionAttributes } from '#engine/admission/admission.ts';
import type { GroupVersionKind } from '#engine/registry/resource.ts';
import { admissionAttributes } from '#engine/handlers/write/admit.ts';
import { tooManyValues } from '#engine/body/decode-body.ts';
import { countValues, ValueCountError } from '#engine/encoding/json-bounds.ts';
import { decodeEntry, prepareEntries, type Call } from '#engine/handlers/call.ts';
import { entryId } from '#engine/registry/stored-entries.ts';
import { commitObject } from '#engine/handlers/write/commit.ts';
import { keepServerFields, keepSubresourceFields } from '#engine/handlers/write/keep-fields.ts';
import { undecodable } from '#engine/handlers/write/read-object.ts';
import { copyOf, isSameMetadata, keepManagedFields, trackWrite } from '#engine/handlers/write/own-fields.ts';
import { respondEntry, respondObject } from '#engine/handlers/respond.ts';
import { assertStillBound, withoutStoredValues } from '#engine/handlers/stored-access.ts';
import { shapeInTurns, shapeObject, validateChanged } from '#engine/handlers/write/shape.ts';
import { MAX_OBJECT_VALUES, MAX_WRITE_ATTEMPTS } from '#engine/request/limits.ts';
import { missingResourceVersion, type WriteRequestOptions } from '#engine/handlers/options.ts';
import type { ApiResponse } from '#engine/request/request.ts';
import type { Entry } from '#engine/store/store.ts';
import { ApiError, badRequest, conflict, invalid, MODIFIED, notFound } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import type { KubeObject } from '#kube/meta.ts';

interface Modification extends WriteRequestOptions {
  /** Returns the desired object. Gets a new copy of the current one, which it may modify and return. */
  change(current: KubeObject): KubeObject | Promise<KubeObject>;
  /** True if the change sets managedFields itself. */
  readonly owned?: boolean;
  /** True if the change reads managedFields; otherwise the copy omits them. */
  readonly readsOwners?: boolean;
  /** True if a PUT of a custom resource must name the revision that it replaces. */
  readonly needsRevision: boolean;
  /** Returns the error for an object that is not of its kind; patches have a different message. */
  undecodable?(current: KubeObject, why: string): ApiError;
  /** The view of the object on this path, if it is not the object itself. */
  readonly view?: ObjectView;
}

/** A view such as Scale, which admission sees and modifies instead of the object. */
export interface ObjectView {
  readonly kind: GroupVersionKind;
  of(object: KubeObject): KubeObject;
  /** Applies the modified view to the object. */
  into(object: KubeObject, shown: KubeObject): KubeObject;
}

/** The result: the stored entry, or for a dry run the object that would be stored. */
type ModificationResult = { readonly warnings: readonly string[] } & (
  | { readonly entry: Entry; readonly object?: undefined }
  | { readonly entry?: undefined; readonly object: KubeObject }
);

export async function modify(call: Call, modification: Modification): Promise<ApiResponse> {
  const { entry, object, warnings } = await modifyObject(call, modification);
  const options = { status: 200, warnings };
  return entry === undefined ? respondObject(call, object, options) : respondEntry(call, entry, options);
}

export async function modifyObject(call: Call, modification: Modification): Promise<ModificationResult> {
  const { resource } = call.served;
  const { name, namespace } = call.route;
  const id = entryId(resource, namespace, name);
  for (let attempt = 1; attempt <= MAX_WRITE_ATTEMPTS; attempt++) {
    const entry = call.store.latest(resource.collection, id);
    if (entry === undefined) throw notFound(resource, name);
    assertStillBound(call);
    try {
      const done = await attemptOnce(call, modification, entry);
      if (done !== undefined) return done;
    } catch (error) {
      if (!isConflictOrRefusal(error) || (await call.store.settled(entry))) throw withoutStoredValues(call, error);
    }
  }
  throw conflict(resource, name, MODIFIED);
}

/**
 * Reports whether an error may be returned only after the version it refers to is durable: a client that reads again
 * after a conflict must see that version. If that version failed, the error does not count.
 */
function isConflictOrRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.code < 500;
}

/** Returns undefined if another write came first, or if a write that this one built on failed. */
async function attemptOnce(
  call: Call,
  modification: Modification,
  entry: Entry,
): Promise<ModificationResult | undefined> {
  const { resource } = call.served;
  const { view } = modification;
  const reading = prepareEntries(call, [entry]);
  if (reading !== undefined) await reading;
  call.pace.noteSize(entry.bytes.length);
  if (call.pace.isLarge) await call.pace.step();
  const old = decodeEntry(entry, resource);
  const copy = copyOf(old, { withOwners: modification.owned === true || modification.readsOwners === true });
  if (call.pace.isLarge) await call.pace.step();
  const changing = modification.change(copy);
  let next = changing instanceof Promise ? await changing : changing;
  assertValueCount(next, old);
  assertSame(call, next, old, modification.needsRevision);
  const toError = (why: string) => modification.undecodable?.(old, why) ?? undecodable(call, why);
  const resetsOwners = isEmptyList(next.metadata.managedFields);
  const { fieldValidation } = modification;
  const warnings = call.pace.isLarge
    ? await shapeInTurns(call, next, fieldValidation, toError)
    : shapeObject(call, next, fieldValidation, toError);
  // Shaping removes empty lists, but an empty managedFields resets the managers.
  if (resetsOwners) next.metadata.managedFields = [];
  keepServerFields(next, old);
  keepSubresourceFields(call, next, old);
  // Tracked before admission: changes by admission belong to no manager, as in Kubernetes.
  if (modification.owned !== true) {
    // A patch leaves untouched parts in the copy, so comparing them is a single check.
    trackWrite(call, next, { old, base: next === copy ? old : copy }, modification.fieldManager);
  }
  if (call.pace.isLarge) await call.pace.step();
  const { managedFields } = next.metadata;
  const shown = view?.of(next) ?? next;
  const mutating = call.admission.mutate(attributesOf(call, modification, shown, old));
  if (mutating instanceof Promise) await mutating;
  if (view !== undefined) next = view.into(next, shown);
  // Admission may not write more than the client.
  keepServerFields(next, old);
  keepSubresourceFields(call, next, old);
  keepManagedFields(call, next, managedFields);
  if (call.pace.isLarge) await call.pace.step();
  if (call.route.subresource === '') resource.strategy.prepareForUpdate?.(next, old);
  const sameWish = isSameDesiredState(call, next, old);
  if (resource.generation) next.metadata.generation = (old.metadata.generation ?? 1) + (sameWish ? 0 : 1);
  if (call.pace.isLarge) await call.pace.step();
  const checking = validateChanged(call, next, old);
  if (checking instanceof Promise) await checking;
  if (call.pace.isLarge) await call.pace.step();
  const admitted = attributesOf(call, modification, view?.of(next) ?? next, old);
  const validating = call.admission.validate(admitted);
  if (validating instanceof Promise) await validating;
  if (call.pace.isLarge) await call.pace.step();
  const isSame = sameWish && deepEqual(next['status'], old['status']) && isSameMetadata(next.metadata, old.metadata);
  // An object in an outdated stored form is written again.
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
  const written = await commitObject(call, { id, expected, object: next, admitted, remove, owned: modification.owned });
  return written && { entry: written, warnings };
}

function attributesOf(call: Call, wanted: Modification, object: KubeObject, old: KubeObject): AdmissionAttributes {
  const { view, dryRun, sent } = wanted;
  const oldObject = view?.of(old) ?? old;
  const { name } = call.route;
  return admissionAttributes(call, {
    operation: 'UPDATE',
    name,
    object,
    oldObject,
    dryRun,
    options: sent,
    kind: view?.kind,
  });
}

/** Refuses an object that grows beyond the limit. */
function assertValueCount(next: KubeObject, old: KubeObject): void {
  if (countOwnValues(next) <= MAX_OBJECT_VALUES) return;
  if (countOwnValues(old) <= MAX_OBJECT_VALUES) throw tooManyValues(new ValueCountError());
}

/** Excludes managedFields, which only the size of the object limits. */
function countOwnValues({ metadata, ...rest }: KubeObject): number {
  return countValues({ ...rest, metadata: { ...metadata, managedFields: undefined } });
}

const isEmptyList = (value: unknown): boolean => Array.isArray(value) && value.length === 0;

/** Checks that the object is the one on the path, and the version that the caller saw. */
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
    // Kubernetes names the resource instead of the kind here.
    if (needsRevision && (!resource.builtIn || resource.needsRevision === true)) {
      throw invalid({ group: resource.group, kind: resource.plural }, name, [missingResourceVersion()]);
    }
    metadata.resourceVersion = old.metadata.resourceVersion;
  }
  if (metadata.resourceVersion !== old.metadata.resourceVersion) throw conflict(resource, name, MODIFIED);
}

/** Formats a field whose type is not checked yet: an object with a toString of its own cannot be converted. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/**
 * Compares everything except metadata and status, which is what generation counts. Without a status subresource, status
 * is part of the desired state.
 */
function isSameDesiredState(call: Call, next: KubeObject, old: KubeObject): boolean {
  const { metadata: _m, status, ...desired } = next;
  const { metadata: _om, status: before, ...desiredBefore } = old;
  return deepEqual(desired, desiredBefore) && (call.served.resource.status || deepEqual(status, before));
}

/** Reports whether nothing blocks the removal of an object under deletion. */
export function isReleased(call: Call, object: KubeObject): boolean {
  const { metadata } = object;
  if (metadata.deletionTimestamp === undefined) return false;
  if ((metadata.deletionGracePeriodSeconds ?? 0) > 0 || (metadata.finalizers?.length ?? 0) > 0) return false;
  return !call.served.resource.strategy.hasDeletionBlocker?.(object);
}
