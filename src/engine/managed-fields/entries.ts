/**
 * The entries of metadata.managedFields: their identity, order, and which list of a client applies. Stored entries are
 * canonical (written by formatFieldsV1), so that untouched ones are never parsed.
 */
import { FieldSetError, parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import type { FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsV1Of } from '#engine/managed-fields/fields-text.ts';
import type { FieldsV1 } from '#engine/encoding/stored-object.ts';
import { compareText } from '#lib/text/compare-text.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord, type KubeObject, type ManagedFieldsEntry } from '#kube/meta.ts';

type ManagedOperation = 'Apply' | 'Update';

/** The manager of a write, its path and time. */
export interface FieldWriter {
  readonly manager: string;
  readonly apiVersion: string;
  /** '' = the object's own path. */
  readonly subresource: string;
  readonly nowMs: number;
}

/** A complete entry. */
export interface ManagedEntry extends ManagedFieldsEntry {
  readonly manager?: string;
  readonly operation: ManagedOperation;
  readonly apiVersion: string;
  readonly fieldsType: 'FieldsV1';
  readonly fieldsV1: FieldsV1;
}

export interface EntryHead {
  readonly manager: string;
  readonly operation: ManagedOperation;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string | undefined;
}

export function makeEntry(head: EntryHead, fields: FieldSet): ManagedEntry {
  return entryOf(head, fieldsV1Of(fields));
}

export function entryOf(
  { manager, operation, apiVersion, subresource, time }: EntryHead,
  fieldsV1: FieldsV1,
): ManagedEntry {
  return {
    ...(manager === '' ? {} : { manager }),
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1,
    ...(subresource === '' ? {} : { subresource }),
  };
}

export function headOf({ manager = '', operation, apiVersion, subresource = '', time }: ManagedEntry): EntryHead {
  return { manager, operation, apiVersion, subresource, time };
}

/** Returns the same entry with other fields, or undefined if none are left. */
export function withFields(entry: ManagedEntry, fields: FieldSet): ManagedEntry | undefined {
  if (!fields.member && fields.children.size === 0) return undefined;
  return makeEntry(headOf(entry), fields);
}

/** Reports whether an entry belongs to a writer. An applier has one entry for all versions. */
export function isEntryOf(entry: ManagedEntry, operation: ManagedOperation, writer: FieldWriter): boolean {
  return (
    entry.operation === operation &&
    (entry.manager ?? '') === writer.manager &&
    (entry.subresource ?? '') === writer.subresource &&
    (operation === 'Apply' || entry.apiVersion === writer.apiVersion)
  );
}

/** Returns the identity of an entry, as Kubernetes writes and sorts it. */
export function managerIdentity({ manager, operation, apiVersion, subresource }: Omit<EntryHead, 'time'>): string {
  return JSON.stringify({
    ...(manager === '' ? {} : { manager }),
    operation,
    ...(operation === 'Apply' ? {} : { apiVersion }),
    ...(subresource === '' ? {} : { subresource }),
  });
}

function seconds(time: string | undefined): number {
  const ms = time === undefined ? 0 : Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}

/** Compares times. Our own compare as text; a client may have written others. */
export function compareTimes(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a?.length === UTC_LENGTH && b?.length === UTC_LENGTH && a.endsWith('Z') && b.endsWith('Z')) {
    return a < b ? -1 : 1;
  }
  return seconds(a) - seconds(b);
}

/** The length of `2026-11-16T16:18:58Z`. */
const UTC_LENGTH = 20;

/** Sorts in place: by operation, then oldest first. */
export function sortManagedEntries(entries: ManagedEntry[]): ManagedEntry[] {
  if (entries.length < 2) return entries;
  return entries.sort(
    (a, b) =>
      compareText(a.operation, b.operation) ||
      compareTimes(a.time, b.time) ||
      compareText(a.manager ?? '', b.manager ?? '') ||
      compareText(a.apiVersion, b.apiVersion) ||
      compareText(a.subresource ?? '', b.subresource ?? ''),
  );
}

/** Returns the entries of a stored object. Unreadable ones (of an older version of ours) count as none. */
export function storedEntries(object: KubeObject | undefined): readonly ManagedEntry[] {
  const stored = object?.metadata.managedFields;
  if (stored === undefined || stored === null) return NO_ENTRIES;
  return stored.every(isComplete) ? stored : NO_ENTRIES;
}

const NO_ENTRIES: readonly ManagedEntry[] = [];

/**
 * Returns the entries that a write starts from: those of the client if they are valid, else the stored ones, so that a
 * client that does not know them does not delete them.
 */
export function entriesToStartFrom(next: KubeObject, old: KubeObject | undefined): readonly ManagedEntry[] {
  const sent = next.metadata.managedFields;
  const stored = old?.metadata.managedFields;
  if (sent === undefined || sent === null || sent === stored || deepEqual(sent, stored)) return storedEntries(old);
  if (isReset(sent)) return NO_ENTRIES;
  const read = readEntries(sent);
  return typeof read === 'string' || read.length === 0 ? storedEntries(old) : read;
}

/** `[]` and `[{}]` request a reset. */
function isReset(sent: readonly ManagedFieldsEntry[]): boolean {
  return sent.length === 0 || (sent.length === 1 && isRecord(sent[0]) && Object.keys(sent[0]).length === 0);
}

/** Returns canonical entries that a client or a webhook wrote, or why they are invalid. */
export function readEntries(sent: readonly ManagedFieldsEntry[]): ManagedEntry[] | string {
  const byIdentity = new Map<string, ManagedEntry>();
  for (const [index, entry] of sent.entries()) {
    const error = findHeadError(entry, index);
    if (error !== undefined) return error;
    const whole = entry as ManagedEntry;
    try {
      const read = makeEntry(headOf(whole), parseFieldsV1(whole.fieldsV1 ?? {}));
      byIdentity.set(managerIdentity(headOf(read)), read);
    } catch (error) {
      if (!(error instanceof FieldSetError)) throw error;
      return `error decoding set: ${error.message}`;
    }
  }
  return [...byIdentity.values()];
}

function findHeadError(entry: ManagedFieldsEntry, index: number): string | undefined {
  const { operation, apiVersion, fieldsType } = isRecord(entry) ? entry : {};
  if (operation !== 'Apply' && operation !== 'Update') return 'operation must be `Apply` or `Update`';
  if (!apiVersion) return 'apiVersion must not be empty';
  if (!fieldsType) return `missing fieldsType in managed fields entry ${index}`;
  if (fieldsType !== 'FieldsV1')
    return `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`;
  return undefined;
}

function isComplete(entry: ManagedFieldsEntry): entry is ManagedEntry {
  return isRecord(entry) && isRecord(entry.fieldsV1) && findHeadError(entry, 0) === undefined;
}
