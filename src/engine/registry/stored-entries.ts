/**
 * The objects of a kind as entries of the store: their ids, and label and field selectors, which parse no more than
 * necessary.
 */
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { Entry } from '#engine/store/store.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { badRequest } from '#kube/api-error.ts';
import { matchesFields, type FieldRequirement } from '#kube/selectors/field-selector.ts';
import { matchesLabels, type LabelRequirement } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

/** Returns the store's id of an object. */
export function entryId(resource: Resource, namespace: string, name: string): string {
  return resource.namespaced ? `${namespace}/${name}` : name;
}

/** Reverses entryId. */
export function splitId(id: string): { namespace: string; name: string } {
  const slash = id.indexOf('/');
  return { namespace: slash < 0 ? '' : id.slice(0, slash), name: id.slice(slash + 1) };
}

/** Returns the prefix of a namespace's ids, or undefined for all namespaces. */
export function idPrefix(resource: Resource, namespace: string): string | undefined {
  return resource.namespaced && namespace !== '' ? `${namespace}/` : undefined;
}

export interface ListSelection {
  readonly labels: readonly LabelRequirement[];
  readonly fields: readonly FieldRequirement[];
}

export type EntryFilter = (entry: Entry) => boolean;

/** Labels by entry, parsed once: lists and watches by label are frequent. */
const labels = new WeakMap<Entry, Record<string, string>>();
const NO_LABELS: Record<string, string> = {};

/** Recently parsed entries, for the fan-out of one event to many watchers. Read-only. */
const recent = new BoundedCache<Entry, KubeObject>({ maxEntries: 256, maxWeight: 4 * 1024 * 1024 });

export function peekObject(entry: Entry): KubeObject {
  let object = recent.get(entry);
  if (object === undefined) {
    object = decodeStored(entry.bytes);
    recent.set(entry, object, entry.bytes.length);
  }
  return object;
}

function labelsOf(resource: Resource, entry: Entry): Record<string, string> {
  if (resource.stored?.webhook !== undefined) return servedObject(resource, entry).metadata.labels ?? NO_LABELS;
  let known = labels.get(entry);
  if (known === undefined) {
    known = peekObject(entry).metadata.labels ?? NO_LABELS;
    labels.set(entry, known);
  }
  return known;
}

/** Returns the object in the requested version, read-only: a conversion may change labels and fields. */
function servedObject(resource: Resource, entry: Entry): KubeObject {
  if (resource.stored?.webhook === undefined) return peekObject(entry);
  // Callers that did not prepare it (policy parameters) see the stored version.
  const bytes = resource.stored.peek(entry) ?? entry.bytes;
  return bytes === entry.bytes ? peekObject(entry) : decodeStored(bytes);
}

/** Returns undefined if everything matches. */
export function entryFilter(resource: Resource, selection: ListSelection): EntryFilter | undefined {
  for (const { field } of selection.fields) assertSelectable(resource, field);
  if (selection.labels.length === 0 && selection.fields.length === 0) return undefined;
  return (entry) =>
    (selection.labels.length === 0 || matchesLabels(selection.labels, labelsOf(resource, entry))) &&
    (selection.fields.length === 0 || matchesFields(selection.fields, (field) => fieldOf(resource, entry, field)));
}

/** The time of a match besides its terms, in units of lib/fair-turns.ts. */
const MATCH_UNITS = 16;
/** A longer label selector is indexed: a match takes time in proportion to the labels of the object. */
const MAX_COUNTED_TERMS = 64;

/** Estimates the time to match an entry, in units of lib/fair-turns.ts. The first match of an entry parses it. */
export function matchUnits({ labels: terms, fields }: ListSelection, entry: Entry): number {
  const isParsed = fields.length === 0 ? labels.has(entry) : recent.has(entry) || fields.every(isOfId);
  return (
    MATCH_UNITS + Math.min(terms.length, MAX_COUNTED_TERMS) + fields.length + (isParsed ? 0 : entry.bytes.length / 2)
  );
}

const isOfId = ({ field }: FieldRequirement) => field === 'metadata.name' || field === 'metadata.namespace';

function assertSelectable(resource: Resource, field: string): void {
  if (field === 'metadata.name') return;
  if (field === 'metadata.namespace' && resource.namespaced) return;
  if (!Object.hasOwn(resource.selectableFields, field)) throw badRequest(`field label not supported: ${field}`);
}

function fieldOf(resource: Resource, entry: Entry, field: string): string {
  if (field === 'metadata.name') return splitId(entry.id).name;
  if (field === 'metadata.namespace') return splitId(entry.id).namespace;
  return resource.selectableFields[field]!(servedObject(resource, entry));
}

/** Returns the only name that a selection can match, so that `get -w NAME` need not check every object. */
export function onlyName(fields: readonly FieldRequirement[]): string | undefined {
  return fields.find(({ field, operator }) => field === 'metadata.name' && operator === '=')?.value;
}
