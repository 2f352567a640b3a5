/**
 * Updates ownership after a create, an update, or a patch that is not an apply: the writer of a field owns it, and
 * removed fields have no owner. Objects that are not tracked (from before tracking, or reset) stay so until the first
 * apply.
 */
import { timestamp } from '#lib/clock.ts';
import { compareFields } from '#kube/field-sets/compare-fields.ts';
import { difference, isEmpty, union, type FieldSet } from '#kube/field-sets/field-set.ts';
import { FieldTypeError } from '#kube/field-sets/list-item.ts';
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import type { KubeObject } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { capUpdates } from '#engine/managed-fields/cap-updates.ts';
import {
  entriesToStartFrom,
  entryOf,
  isEntryOf,
  makeEntry,
  sortManagedEntries,
  storedEntries,
  withFields,
  type ManagedEntry,
  type EntryHead,
  type FieldWriter,
} from '#engine/managed-fields/entries.ts';
import { emptyObject, ownablePart, stripMetadata, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { fieldsOfNew } from '#engine/managed-fields/new-fields.ts';
import { migrateEntry } from '#engine/managed-fields/migrate-entry.ts';
import { coversFields, ownsNothing, touches } from '#engine/managed-fields/raw-fields.ts';

export interface PreviousState {
  /** The stored object, with its managedFields. */
  readonly old: KubeObject;
  /** An object of the same value that shares unchanged parts with the next one, for comparison. */
  readonly base: KubeObject;
}

/** Sets next.metadata.managedFields; `past` is undefined for a new object. */
export function trackUpdate(
  next: KubeObject,
  past: PreviousState | undefined,
  writer: FieldWriter,
  scope: FieldScope,
): void {
  const old = past?.old;
  // Clients cannot set them through a subresource.
  const start = writer.subresource === '' ? entriesToStartFrom(next, old) : storedEntries(old);
  if (start.length === 0 && old !== undefined) {
    delete next.metadata.managedFields;
    return;
  }
  const after = ownablePart(next, scope);
  if (past === undefined && start.length === 0) {
    const fieldsV1 = fieldsOfNew(after, scope);
    if (fieldsV1 !== undefined) setEntries(next, [entryOf(headNow(writer), fieldsV1)]);
    else delete next.metadata.managedFields;
    return;
  }
  const before = past === undefined ? emptyObject(scope) : ownablePart(past.base, scope);
  setEntries(next, entriesOrStart(start, before, after, writer, scope));
}

function setEntries({ metadata }: KubeObject, entries: ManagedEntry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = entries;
}

/** List items without a key are mostly rejected later; otherwise the ownership does not change. */
function entriesOrStart(...args: Parameters<typeof updateEntries>): ManagedEntry[] {
  try {
    return updateEntries(...args);
  } catch (error) {
    if (!(error instanceof FieldTypeError)) throw error;
    return [...args[0]];
  }
}

/** The changes of a write, in terms of one version. */
interface FieldChange {
  readonly written: FieldSet;
  readonly removed: FieldSet;
}

type OwnedPart = Record<string, unknown>;

export function updateEntries(
  start: readonly ManagedEntry[],
  before: OwnedPart,
  after: OwnedPart,
  writer: FieldWriter,
  scope: FieldScope,
): ManagedEntry[] {
  const own = changeBetween(before, after, scope.schema);
  const entries: ManagedEntry[] = [];
  let mine: ManagedEntry | undefined;
  for (const stored of start) {
    const entry = migrateEntry(stored, scope);
    const change = entry.apiVersion === scope.apiVersion ? own : changeIn(entry.apiVersion, before, after, scope);
    // A version that is no longer served is ignored.
    if (change === undefined) continue;
    if (isEntryOf(entry, 'Update', writer)) mine = entry;
    else keepRest(entries, entry, change);
  }
  const written = stripMetadata(own.written);
  if (!isEmpty(written)) entries.push(extendEntry(mine, written, own.removed, writer));
  else if (mine !== undefined) keepRest(entries, mine, own);
  return sortManagedEntries(capUpdates(entries));
}

function changeBetween(before: OwnedPart, after: OwnedPart, schema: Schema): FieldChange {
  const { added, modified, removed } = compareFields(before, after, schema);
  return { written: isEmpty(added) ? modified : isEmpty(modified) ? added : union(added, modified), removed };
}

function changeIn(apiVersion: string, before: OwnedPart, after: OwnedPart, scope: FieldScope): FieldChange | undefined {
  const schema = scope.schemaIn(apiVersion);
  return schema && changeBetween(before, after, schema);
}

/** Keeps the fields that another manager still owns. */
function keepRest(entries: ManagedEntry[], entry: ManagedEntry, { written, removed }: FieldChange): void {
  const { fieldsV1 } = entry;
  const loses = touches(fieldsV1, written);
  const removes = touches(fieldsV1, removed);
  if (!loses && !removes) {
    // Only a client can write such an entry.
    if (!ownsNothing(fieldsV1)) entries.push(entry);
    return;
  }
  const left = difference(difference(parseFieldsV1(fieldsV1), written), removed);
  const rest = withFields(entry, left);
  if (rest !== undefined) entries.push(rest);
}

/** Adds the written fields to the writer's own entry. */
function extendEntry(
  mine: ManagedEntry | undefined,
  written: FieldSet,
  removed: FieldSet,
  writer: FieldWriter,
): ManagedEntry {
  const head = headNow(writer);
  if (mine === undefined) return makeEntry(head, written);
  const { fieldsV1 } = mine;
  if (coversFields(fieldsV1, written) && !touches(fieldsV1, removed)) return entryOf(head, fieldsV1);
  return makeEntry(head, union(difference(parseFieldsV1(fieldsV1), removed), written));
}

function headNow({ manager, apiVersion, subresource, nowMs }: FieldWriter): EntryHead {
  return { manager, operation: 'Update', apiVersion, subresource, time: timestamp(nowMs) };
}
