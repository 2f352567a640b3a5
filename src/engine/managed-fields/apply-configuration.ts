/**
 * Server-side apply: a configuration is all that its manager wants to say about an object.
 *
 *   merge ──► prune what the manager said last time and nobody says now ──► conflicts? ──► ownership
 *
 * Pure: what comes out is shaped, defaulted, admitted and stored by the handlers. Defaults belong to nobody.
 */
import { timestamp } from '#lib/clock.ts';
import { ApiError, badRequest } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import { describeFaults, typeFaults } from '#kube/field-sets/check-config.ts';
import { compareFields } from '#kube/field-sets/compare-fields.ts';
import { difference, intersection, isEmpty, sameFields, union, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsOf } from '#kube/field-sets/fields-of.ts';
import { FieldTypeError } from '#kube/field-sets/list-item.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { mergeConfig } from '#kube/field-sets/merge-config.ts';
import { parseApiVersion, type KubeObject } from '#kube/meta.ts';
import { conflictError, type FieldConflict } from '#engine/managed-fields/conflicts.ts';
import {
  headOf,
  identityOf,
  isOf,
  makeEntry,
  sortEntries,
  storedEntries,
  type Entry,
  type Writer,
} from '#engine/managed-fields/entries.ts';
import { emptyObject, ownable, stripped, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { allowedByLastApplied, followLastApplied } from '#engine/managed-fields/last-applied.ts';
import { mendedEntry } from '#engine/managed-fields/mended-entry.ts';
import { pruned, type Owned } from '#engine/managed-fields/prune.ts';
import { updatedEntries } from '#engine/managed-fields/track-update.ts';

export interface Applier extends Writer {
  readonly force: boolean;
}

/** Its annotation is kept in step, and what it said there is its own without a conflict. */
const KUBECTL = 'kubectl';
const BEFORE_FIRST_APPLY = 'before-first-apply';

/**
 * The object as the configuration wants it, with its managedFields; `live` is undefined where there is none yet. The
 * result shares parts with both. Throws the 409 that names each field which another manager has with another value.
 */
export function applyConfiguration(
  live: KubeObject | undefined,
  config: KubeObject,
  applier: Applier,
  scope: FieldScope,
): KubeObject {
  assertConfig(config, scope);
  try {
    return applied(live, config, applier, scope);
  } catch (error) {
    if (!(error instanceof FieldTypeError)) throw error;
    // The live object is at fault: two of its items cannot be told apart.
    throw untyped('live', live ?? config, error.message);
  }
}

function applied(live: KubeObject | undefined, config: KubeObject, applier: Applier, scope: FieldScope): KubeObject {
  const entries = startingEntries(live, applier, scope);
  const before = withoutManagedFields(live ?? { apiVersion: config.apiVersion, kind: config.kind, metadata: {} });
  const { object, owned } = merged(before, config, entries, applier, scope);
  const conflicts = takeOver(owned, before, object, applier, scope);
  if (conflicts.length > 0 && !applier.force) refuseConflicts(conflicts, before, applier, scope);
  const told = applier.manager === KUBECTL ? followLastApplied(object, config) : object;
  return withOwners(told, owned, entries, live, applier);
}

function assertConfig(config: KubeObject, { schema }: FieldScope): void {
  if (config.metadata.managedFields !== undefined && config.metadata.managedFields !== null) {
    throw badRequest('metadata.managedFields must be nil');
  }
  const faults = typeFaults(config, schema);
  if (faults.length > 0) throw untyped('patch', config, describeFaults(faults));
}

/** Kubernetes gives no reason either, but the code of a fault of its own. */
function untyped(which: 'patch' | 'live', object: KubeObject, why: string): ApiError {
  const [namespace, name] = [object.metadata.namespace, object.metadata.name].map((text: unknown) =>
    typeof text === 'string' ? text : '',
  );
  return new ApiError(
    400,
    '',
    `failed to create typed ${which} object (${namespace}/${name}; ${kindText(object)}): ${why}`,
  );
}

/** `apps/v1, Kind=Deployment`. */
export function kindText({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): string {
  const { group, version } = parseApiVersion(apiVersion);
  return `${group}/${version}, Kind=${kind}`;
}

/** What was there before anybody applied belongs to all of those together. */
function startingEntries(live: KubeObject | undefined, applier: Applier, scope: FieldScope): readonly Entry[] {
  const stored = storedEntries(live);
  if (stored.length > 0 || live === undefined) return stored;
  const writer = { ...applier, manager: BEFORE_FIRST_APPLY };
  return updatedEntries([], emptyObject(scope), ownable(live, scope), writer, scope);
}

function withoutManagedFields(object: KubeObject): KubeObject {
  if (object.metadata.managedFields === undefined) return object;
  const metadata = { ...object.metadata };
  delete metadata.managedFields;
  return { ...object, metadata };
}

interface Merged {
  readonly object: KubeObject;
  /** By identity; the applier's own is what it says now. */
  readonly owned: Map<string, Owned>;
}

function merged(
  before: KubeObject,
  config: KubeObject,
  entries: readonly Entry[],
  applier: Applier,
  scope: FieldScope,
): Merged {
  const owned = new Map<string, Owned>();
  let last: Owned | undefined;
  for (const stored of entries) {
    const entry = mendedEntry(stored, scope);
    const item = { head: headOf(entry), fields: parseFieldsV1(entry.fieldsV1) };
    if (isOf(entry, 'Apply', applier)) last = item;
    else owned.set(identityOf(item.head), item);
  }
  const fields = fieldsOf(ownable(config, scope), scope.schema);
  const { manager, apiVersion, subresource } = applier;
  const head = { manager, operation: 'Apply', apiVersion, subresource, time: last?.head.time } as const;
  const identity = identityOf(head);
  owned.set(identity, { head, fields });
  const object = mergeConfig(before, config, scope.schema) as KubeObject;
  const left = last === undefined ? object : pruned(object, last, [...owned.values()], fields, scope);
  owned.set(identity, { head, fields: stripped(fields) });
  // What lost its last item goes; an empty map or list that the configuration names stays.
  const whole = left === object ? object : mergeConfig(left, config, scope.schema);
  return { object: whole as KubeObject, owned };
}

/** Takes from the others what changes now; gives what that was. */
function takeOver(
  owned: Map<string, Owned>,
  before: KubeObject,
  object: KubeObject,
  applier: Applier,
  scope: FieldScope,
): FieldConflict[] {
  const conflicts: FieldConflict[] = [];
  const changes = new Map<string, { written: FieldSet; removed: FieldSet } | undefined>();
  const changeIn = (apiVersion: string) => {
    if (!changes.has(apiVersion)) {
      const schema = scope.schemaIn(apiVersion);
      const compared = schema && compareFields(ownable(before, scope), ownable(object, scope), schema);
      const change = compared && { written: union(compared.added, compared.modified), removed: compared.removed };
      changes.set(apiVersion, change);
    }
    return changes.get(apiVersion);
  };
  const own = identityOf({ ...applier, operation: 'Apply' });
  for (const [identity, { head, fields }] of owned) {
    if (identity === own) continue;
    const change = changeIn(head.apiVersion);
    if (change === undefined) {
      owned.delete(identity);
      continue;
    }
    const taken = intersection(fields, change.written);
    if (!isEmpty(taken)) conflicts.push({ identity, head, fields: taken });
    const left = difference(difference(fields, taken), change.removed);
    owned.set(identity, { head, fields: left });
  }
  return conflicts;
}

function refuseConflicts(
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

/** The applier's time tells when the object or what it owns changed last. */
function withOwners(
  object: KubeObject,
  owned: ReadonlyMap<string, Owned>,
  entries: readonly Entry[],
  live: KubeObject | undefined,
  applier: Applier,
): KubeObject {
  const own = identityOf({ ...applier, operation: 'Apply' });
  const stored = new Map(entries.map((entry) => [identityOf(headOf(entry)), entry]));
  const changed = live === undefined || !deepEqual(object, withoutManagedFields(live));
  const next: Entry[] = [];
  for (const [identity, { head, fields }] of owned) {
    if (isEmpty(fields)) continue;
    const known = stored.get(identity);
    const same =
      known !== undefined && known.apiVersion === head.apiVersion && sameFields(parseFieldsV1(known.fieldsV1), fields);
    const entry = same ? known : makeEntry(head, fields);
    const touched = identity === own && (changed || !same);
    next.push(touched ? { ...entry, time: timestamp(applier.nowMs) } : entry);
  }
  const metadata = { ...object.metadata };
  if (next.length > 0) metadata.managedFields = sortEntries(next);
  return { ...object, metadata };
}
