/**
 * Ownership after a create, an update, or a patch that is no apply: who wrote a field owns it, whoever owned it before,
 * and what is gone belongs to nobody. Objects that are not tracked (of before there was tracking, or reset) stay so
 * until the first apply.
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
  isOf,
  makeEntry,
  sortEntries,
  storedEntries,
  withFields,
  type Entry,
  type EntryHead,
  type Writer,
} from '#engine/managed-fields/entries.ts';
import { emptyObject, ownable, stripped, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { fieldsOfNew } from '#engine/managed-fields/new-fields.ts';
import { mendedEntry } from '#engine/managed-fields/mended-entry.ts';
import { covers, ownsNothing, touches } from '#engine/managed-fields/raw-fields.ts';

export interface Past {
  /** As stored: says who owns what. */
  readonly old: KubeObject;
  /** Of the same value, but shares with the next object what did not change: what is compared. */
  readonly base: KubeObject;
}

/** Sets next.metadata.managedFields; `past` is undefined for a new object. */
export function trackUpdate(next: KubeObject, past: Past | undefined, writer: Writer, scope: FieldScope): void {
  const old = past?.old;
  // Through a subresource nobody writes them by hand.
  const start = writer.subresource === '' ? entriesToStartFrom(next, old) : storedEntries(old);
  if (start.length === 0 && old !== undefined) {
    delete next.metadata.managedFields;
    return;
  }
  const after = ownable(next, scope);
  if (past === undefined && start.length === 0) {
    const fieldsV1 = fieldsOfNew(after, scope);
    if (fieldsV1 !== undefined) setEntries(next, [entryOf(headNow(writer), fieldsV1)]);
    else delete next.metadata.managedFields;
    return;
  }
  const before = past === undefined ? emptyObject(scope) : ownable(past.base, scope);
  setEntries(next, entriesOrStart(start, before, after, writer, scope));
}

function setEntries({ metadata }: KubeObject, entries: Entry[]): void {
  if (entries.length === 0) delete metadata.managedFields;
  else metadata.managedFields = entries;
}

/** What has items without a key is mostly refused in a moment; if it is not, ownership stays as it was. */
function entriesOrStart(...args: Parameters<typeof updatedEntries>): Entry[] {
  try {
    return updatedEntries(...args);
  } catch (error) {
    if (!(error instanceof FieldTypeError)) throw error;
    return [...args[0]];
  }
}

/** What a write did, in the terms of one version. */
interface Change {
  readonly written: FieldSet;
  readonly removed: FieldSet;
}

type Part = Record<string, unknown>;

export function updatedEntries(
  start: readonly Entry[],
  before: Part,
  after: Part,
  writer: Writer,
  scope: FieldScope,
): Entry[] {
  const own = changeBetween(before, after, scope.schema);
  const entries: Entry[] = [];
  let mine: Entry | undefined;
  for (const stored of start) {
    const entry = mendedEntry(stored, scope);
    const change = entry.apiVersion === scope.apiVersion ? own : changeIn(entry.apiVersion, before, after, scope);
    // A version that is not served any more tells nothing.
    if (change === undefined) continue;
    if (isOf(entry, 'Update', writer)) mine = entry;
    else keepRest(entries, entry, change);
  }
  const written = stripped(own.written);
  if (!isEmpty(written)) entries.push(grown(mine, written, own.removed, writer));
  else if (mine !== undefined) keepRest(entries, mine, own);
  return sortEntries(capUpdates(entries));
}

function changeBetween(before: Part, after: Part, schema: Schema): Change {
  const { added, modified, removed } = compareFields(before, after, schema);
  return { written: isEmpty(added) ? modified : isEmpty(modified) ? added : union(added, modified), removed };
}

function changeIn(apiVersion: string, before: Part, after: Part, scope: FieldScope): Change | undefined {
  const schema = scope.schemaIn(apiVersion);
  return schema && changeBetween(before, after, schema);
}

/** What another manager still has. */
function keepRest(entries: Entry[], entry: Entry, { written, removed }: Change): void {
  const { fieldsV1 } = entry;
  const loses = touches(fieldsV1, written);
  const gone = touches(fieldsV1, removed);
  if (!loses && !gone) {
    // Only by hand such an entry comes in.
    if (!ownsNothing(fieldsV1)) entries.push(entry);
    return;
  }
  const left = difference(difference(parseFieldsV1(fieldsV1), written), removed);
  const rest = withFields(entry, left);
  if (rest !== undefined) entries.push(rest);
}

/** The writer's own entry with what it wrote now. */
function grown(mine: Entry | undefined, written: FieldSet, removed: FieldSet, writer: Writer): Entry {
  const head = headNow(writer);
  if (mine === undefined) return makeEntry(head, written);
  const { fieldsV1 } = mine;
  if (covers(fieldsV1, written) && !touches(fieldsV1, removed)) return entryOf(head, fieldsV1);
  return makeEntry(head, union(difference(parseFieldsV1(fieldsV1), removed), written));
}

function headNow({ manager, apiVersion, subresource, nowMs }: Writer): EntryHead {
  return { manager, operation: 'Update', apiVersion, subresource, time: timestamp(nowMs) };
}
