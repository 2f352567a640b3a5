/**
 * metadata.managedFields as a list of entries: who is who, their order, and which list of a client counts. Entries that
 * we stored are canonical (formatFieldsV1 wrote them), so that nobody parses what is not touched.
 */
import { FieldSetError, parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import type { FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsV1Of } from '#engine/managed-fields/fields-text.ts';
import { deepEqual } from '#kube/deep.ts';
import { isRecord, type KubeObject, type ManagedFieldsEntry } from '#kube/meta.ts';

export type FieldsV1 = Record<string, unknown>;

export type ManagedOperation = 'Apply' | 'Update';

/** Who writes, through which path, and when. */
export interface Writer {
  readonly manager: string;
  readonly apiVersion: string;
  /** '' = the object's own path. */
  readonly subresource: string;
  readonly nowMs: number;
}

/** An entry whose every part is there. */
export interface Entry extends ManagedFieldsEntry {
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

export function makeEntry(head: EntryHead, fields: FieldSet): Entry {
  return entryOf(head, fieldsV1Of(fields));
}

export function entryOf({ manager, operation, apiVersion, subresource, time }: EntryHead, fieldsV1: FieldsV1): Entry {
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

export function headOf({ manager = '', operation, apiVersion, subresource = '', time }: Entry): EntryHead {
  return { manager, operation, apiVersion, subresource, time };
}

/** The same entry with other fields; undefined = nothing is left of it. */
export function withFields(entry: Entry, fields: FieldSet): Entry | undefined {
  if (!fields.member && fields.children.size === 0) return undefined;
  return makeEntry(headOf(entry), fields);
}

/** Whether it is the one of this writer. Who applies has one entry, whatever the version. */
export function isOf(entry: Entry, operation: ManagedOperation, writer: Writer): boolean {
  return (
    entry.operation === operation &&
    (entry.manager ?? '') === writer.manager &&
    (entry.subresource ?? '') === writer.subresource &&
    (operation === 'Apply' || entry.apiVersion === writer.apiVersion)
  );
}

/** What tells entries apart, as Kubernetes writes and sorts it. */
export function identityOf({ manager, operation, apiVersion, subresource }: Omit<EntryHead, 'time'>): string {
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

/** Those that we wrote compare as texts; a client may have written others. */
export function compareTimes(a: string | undefined, b: string | undefined): number {
  if (a === b) return 0;
  if (a?.length === UTC_LENGTH && b?.length === UTC_LENGTH && a.endsWith('Z') && b.endsWith('Z')) {
    return a < b ? -1 : 1;
  }
  return seconds(a) - seconds(b);
}

/** `2026-11-16T16:18:58Z` */
const UTC_LENGTH = 20;

const compareText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** By operation, then oldest first. Sorts in place. */
export function sortEntries(entries: Entry[]): Entry[] {
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

/** The entries of a stored object. Such as nobody can read (an older version of ours wrote them) are as good as none. */
export function storedEntries(object: KubeObject | undefined): readonly Entry[] {
  const stored = object?.metadata.managedFields;
  if (stored === undefined || stored === null) return NO_ENTRIES;
  return stored.every(isWhole) ? stored : NO_ENTRIES;
}

const NO_ENTRIES: readonly Entry[] = [];

/**
 * What a write starts from: the entries that the client sent, if they can be read, else those that are stored, so that
 * who knows nothing of them does not delete them by accident.
 */
export function entriesToStartFrom(next: KubeObject, old: KubeObject | undefined): readonly Entry[] {
  const sent = next.metadata.managedFields;
  const stored = old?.metadata.managedFields;
  if (sent === undefined || sent === null || sent === stored || deepEqual(sent, stored)) return storedEntries(old);
  if (isReset(sent)) return NO_ENTRIES;
  const read = readEntries(sent);
  return typeof read === 'string' || read.length === 0 ? storedEntries(old) : read;
}

/** `[]` and `[{}]` ask for a new start. */
function isReset(sent: readonly ManagedFieldsEntry[]): boolean {
  return sent.length === 0 || (sent.length === 1 && isRecord(sent[0]) && Object.keys(sent[0]).length === 0);
}

/** Entries that a client or a webhook wrote, made canonical, or what is wrong with them. */
export function readEntries(sent: readonly ManagedFieldsEntry[]): Entry[] | string {
  const byIdentity = new Map<string, Entry>();
  for (const [index, entry] of sent.entries()) {
    const fault = headFault(entry, index);
    if (fault !== undefined) return fault;
    const whole = entry as Entry;
    try {
      const read = makeEntry(headOf(whole), parseFieldsV1(whole.fieldsV1 ?? {}));
      byIdentity.set(identityOf(headOf(read)), read);
    } catch (error) {
      if (!(error instanceof FieldSetError)) throw error;
      return `error decoding set: ${error.message}`;
    }
  }
  return [...byIdentity.values()];
}

function headFault(entry: ManagedFieldsEntry, index: number): string | undefined {
  const { operation, apiVersion, fieldsType } = isRecord(entry) ? entry : {};
  if (operation !== 'Apply' && operation !== 'Update') return 'operation must be `Apply` or `Update`';
  if (!apiVersion) return 'apiVersion must not be empty';
  if (!fieldsType) return `missing fieldsType in managed fields entry ${index}`;
  if (fieldsType !== 'FieldsV1')
    return `invalid fieldsType ${JSON.stringify(fieldsType)} in managed fields entry ${index}`;
  return undefined;
}

function isWhole(entry: ManagedFieldsEntry): entry is Entry {
  return isRecord(entry) && isRecord(entry.fieldsV1) && headFault(entry, 0) === undefined;
}
