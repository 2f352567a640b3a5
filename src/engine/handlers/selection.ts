/** Evaluates label and field selectors on stored entries, and parses no more than necessary. */
import { decodeStored } from '#engine/body/decode-body.ts';
import { splitId } from '#engine/handlers/call.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { ListSelection } from '#engine/handlers/options.ts';
import type { Entry } from '#engine/store/store.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { badRequest } from '#kube/api-error.ts';
import { matchesFields, type FieldRequirement } from '#kube/selectors/field-selector.ts';
import { matchesLabels } from '#kube/selectors/label-selector.ts';
import type { KubeObject } from '#kube/meta.ts';

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
