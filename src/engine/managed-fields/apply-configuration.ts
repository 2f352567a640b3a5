/**
 * Server-side apply: a configuration contains all fields that its manager wants to set on an object.
 *
 *   merge ──► prune fields that the manager no longer sets and nobody else owns ──► conflicts? ──► ownership
 *
 * Pure: the handlers shape, default, admit and store the result. No manager owns defaults.
 */
import { timestamp } from '#lib/clock.ts';
import { ApiError, badRequest } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { describeTypeErrors, checkFieldTypes } from '#kube/field-sets/check-config.ts';
import { compareFields } from '#kube/field-sets/compare-fields.ts';
import { difference, intersection, isEmpty, hasSameFields, union, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsOf } from '#kube/field-sets/fields-of.ts';
import { FieldTypeError } from '#kube/field-sets/list-item.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { mergeConfig } from '#kube/field-sets/merge-config.ts';
import { type KubeObject } from '#kube/meta.ts';
import { kindText } from '#kube/go/go-text.ts';
import { conflictError, type FieldConflict } from '#engine/managed-fields/conflicts.ts';
import {
  headOf,
  managerIdentity,
  isEntryOf,
  makeEntry,
  sortManagedEntries,
  storedEntries,
  type ManagedEntry,
  type FieldWriter,
} from '#engine/managed-fields/entries.ts';
import { emptyObject, ownablePart, stripMetadata, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { allowedByLastApplied, updateLastApplied } from '#engine/managed-fields/last-applied.ts';
import { migrateEntry } from '#engine/managed-fields/migrate-entry.ts';
import { pruneUnset, type OwnedFields } from '#engine/managed-fields/prune.ts';
import { updateEntries } from '#engine/managed-fields/track-update.ts';
import { runAtOnce } from '#lib/run-at-once.ts';

/** A computation that may be interrupted at each yield. */
type ApplySteps<T> = Generator<undefined, T>;

export interface Applier extends FieldWriter {
  readonly force: boolean;
}

/** The manager of kubectl: owns the fields of the last-applied annotation without conflicts, and keeps it up to date. */
const KUBECTL = 'kubectl';
const BEFORE_FIRST_APPLY = 'before-first-apply';

/**
 * Returns the object with the configuration applied and its managedFields; `live` is undefined for a new object. The
 * result shares parts with both. Throws the 409 that lists each field which another manager owns with another value.
 */
export function applyConfiguration(
  live: KubeObject | undefined,
  config: KubeObject,
  applier: Applier,
  scope: FieldScope,
): KubeObject {
  return runAtOnce(applyInSteps(live, config, applier, scope));
}

/** Like applyConfiguration, in steps: a large configuration is applied in several turns of the event loop. */
export function* applyInSteps(
  live: KubeObject | undefined,
  config: KubeObject,
  applier: Applier,
  scope: FieldScope,
): ApplySteps<KubeObject> {
  assertConfig(config, scope);
  yield undefined;
  try {
    return yield* applyToLive(live, config, applier, scope);
  } catch (error) {
    if (!(error instanceof FieldTypeError)) throw error;
    // The live object is invalid: two of its list items have the same key.
    throw typeError('live', live ?? config, error.message);
  }
}

function* applyToLive(
  live: KubeObject | undefined,
  config: KubeObject,
  applier: Applier,
  scope: FieldScope,
): ApplySteps<KubeObject> {
  const entries = startingEntries(live, applier, scope);
  yield undefined;
  const before = withoutManagedFields(live ?? { apiVersion: config.apiVersion, kind: config.kind, metadata: {} });
  const { object, owned } = yield* mergeAndPrune(before, config, entries, applier, scope);
  yield undefined;
  const conflicts = yield* takeOver(owned, before, object, applier, scope);
  yield undefined;
  if (conflicts.length > 0 && !applier.force) throwOnConflicts(conflicts, before, applier, scope);
  const annotated = applier.manager === KUBECTL ? updateLastApplied(object, config) : object;
  yield undefined;
  return yield* withOwners(annotated, owned, entries, live, applier);
}

function assertConfig(config: KubeObject, { schema }: FieldScope): void {
  if (config.metadata.managedFields !== undefined && config.metadata.managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  const errors = checkFieldTypes(config, schema);
  if (errors.length > 0) throw typeError('patch', config, describeTypeErrors(errors));
}

/** Like Kubernetes: no reason, and the code of an internal error. */
function typeError(which: 'patch' | 'live', object: KubeObject, why: string): ApiError {
  const [namespace, name] = [object.metadata.namespace, object.metadata.name].map((text: unknown) =>
    typeof text === 'string' ? text : '',
  );
  return new ApiError(
    400,
    '',
    `failed to create typed ${which} object (${namespace}/${name}; ${kindText(object)}): ${why}`,
  );
}

/** The fields of an object that was never applied belong to one common manager. */
function startingEntries(live: KubeObject | undefined, applier: Applier, scope: FieldScope): readonly ManagedEntry[] {
  const stored = storedEntries(live);
  if (stored.length > 0 || live === undefined) return stored;
  const writer = { ...applier, manager: BEFORE_FIRST_APPLY };
  return updateEntries([], emptyObject(scope), ownablePart(live, scope), writer, scope);
}

function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object;
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  return { ...object, metadata };
}

interface MergeResult {
  readonly object: KubeObject;
  /** Owners by identity; the applier's own fields are those of the configuration. */
  readonly owned: Map<string, OwnedFields>;
}

function* mergeAndPrune(
  before: KubeObject,
  config: KubeObject,
  entries: readonly ManagedEntry[],
  applier: Applier,
  scope: FieldScope,
): ApplySteps<MergeResult> {
  const owned = new Map<string, OwnedFields>();
  let last: OwnedFields | undefined;
  for (const stored of entries) {
    const entry = migrateEntry(stored, scope);
    const item = { head: headOf(entry), fields: parseFieldsV1(entry.fieldsV1) };
    if (isEntryOf(entry, 'Apply', applier)) last = item;
    else owned.set(managerIdentity(item.head), item);
  }
  yield undefined;
  const fields = fieldsOf(ownablePart(config, scope), scope.schema);
  const { manager, apiVersion, subresource } = applier;
  const head = { manager, operation: 'Apply', apiVersion, subresource, time: last?.head.time } as const;
  const identity = managerIdentity(head);
  owned.set(identity, { head, fields });
  yield undefined;
  const object = mergeConfig(before, config, scope.schema) as KubeObject;
  yield undefined;
  const left = last === undefined ? object : yield* pruneUnset(object, last, [...owned.values()], fields, scope);
  yield undefined;
  owned.set(identity, { head, fields: stripMetadata(fields) });
  // A map or list that lost its last item is removed; an empty one that the configuration contains stays.
  const whole = left === object ? object : mergeConfig(left, config, scope.schema);
  return { object: whole as KubeObject, owned };
}

/** Removes changed fields from other managers. Returns the conflicting fields. */
function* takeOver(
  owned: Map<string, OwnedFields>,
  before: KubeObject,
  object: KubeObject,
  applier: Applier,
  scope: FieldScope,
): ApplySteps<FieldConflict[]> {
  const conflicts: FieldConflict[] = [];
  const changes = new Map<string, { written: FieldSet; removed: FieldSet } | undefined>();
  const changeIn = (apiVersion: string) => {
    if (!changes.has(apiVersion)) {
      const schema = scope.schemaIn(apiVersion);
      const compared = schema && compareFields(ownablePart(before, scope), ownablePart(object, scope), schema);
      const change = compared && { written: union(compared.added, compared.modified), removed: compared.removed };
      changes.set(apiVersion, change);
    }
    return changes.get(apiVersion);
  };
  const own = managerIdentity({ ...applier, operation: 'Apply' });
  for (const [identity, { head, fields }] of owned) {
    if (identity === own) continue;
    const change = changeIn(head.apiVersion);
    if (change === undefined) {
      owned.delete(identity);
      continue;
    }
    yield undefined;
    const taken = intersection(fields, change.written);
    if (!isEmpty(taken)) conflicts.push({ identity, head, fields: taken });
    const left = difference(difference(fields, taken), change.removed);
    owned.set(identity, { head, fields: left });
  }
  return conflicts;
}

function throwOnConflicts(
  conflicts: readonly FieldConflict[],
  before: KubeObject,
  applier: Applier,
  scope: FieldScope,
): void {
  const allowed = applier.manager === KUBECTL ? allowedByLastApplied(before, scope) : undefined;
  const left =
    allowed === undefined
      ? conflicts
      : conflicts
          .map((conflict) => ({ ...conflict, fields: difference(conflict.fields, allowed) }))
          .filter(({ fields }) => !isEmpty(fields));
  if (left.length > 0) throw conflictError(left);
}

/** The applier's time is the last change of the object or of its fields. */
function* withOwners(
  object: KubeObject,
  owned: ReadonlyMap<string, OwnedFields>,
  entries: readonly ManagedEntry[],
  live: KubeObject | undefined,
  applier: Applier,
): ApplySteps<KubeObject> {
  const own = managerIdentity({ ...applier, operation: 'Apply' });
  const stored = new Map(entries.map((entry) => [managerIdentity(headOf(entry)), entry]));
  const changed = live === undefined || !deepEqual(object, withoutManagedFields(live));
  const next: ManagedEntry[] = [];
  for (const [identity, { head, fields }] of owned) {
    if (isEmpty(fields)) continue;
    yield undefined;
    const known = stored.get(identity);
    const same =
      known !== undefined &&
      known.apiVersion === head.apiVersion &&
      hasSameFields(parseFieldsV1(known.fieldsV1), fields);
    const entry = same ? known : makeEntry(head, fields);
    const touched = identity === own && (changed || !same);
    next.push(touched ? { ...entry, time: timestamp(applier.nowMs) } : entry);
  }
  const metadata = { ...object.metadata };
  if (next.length > 0) metadata.managedFields = sortManagedEntries(next);
  return { ...object, metadata };
}
