/** Maintains managedFields (managed-fields/) for the handlers that write objects. */
import type { Call } from '#engine/handlers/call.ts';
import { readEntries, type FieldWriter } from '#engine/managed-fields/entries.ts';
import { fieldScope } from '#engine/managed-fields/field-scope.ts';
import { managerName } from '#engine/managed-fields/manager-name.ts';
import { trackUpdate, type PreviousState } from '#engine/managed-fields/track-update.ts';
import { deepClone, deepEqual } from '#kube/deep.ts';
import { apiVersionOf, type KubeObject, type ManagedFieldsEntry, type ObjectMeta } from '#kube/meta.ts';

export function writerOf({ request, route, served, clock }: Call, fieldManager: string): FieldWriter {
  return {
    manager: managerName(fieldManager, request.userAgent),
    apiVersion: apiVersionOf(served.resource),
    subresource: route.subresource,
    nowMs: clock.now(),
  };
}

/** Sets the managedFields of an object that is not written by apply; `past` is undefined for a new object. */
export function trackWrite(call: Call, next: KubeObject, past: PreviousState | undefined, fieldManager: string): void {
  if (call.route.subresource === '') call.served.resource.strategy.defaults?.(next);
  trackUpdate(next, past, writerOf(call, fieldManager), fieldScope(call.served, call.route.subresource));
}

/** Restores managedFields after admission if admission made them invalid. */
export function keepManagedFields(call: Call, object: KubeObject, before: ManagedFieldsEntry[] | undefined): void {
  const { metadata } = object;
  if (metadata.managedFields === before) return;
  const read = metadata.managedFields === undefined ? before : entriesOf(metadata.managedFields, before);
  if (typeof read === 'string') call.notes.warn(`${INVALID_AFTER_ADMISSION}: ${read}`);
  const kept = typeof read === 'string' ? before : read;
  if (kept === undefined) delete metadata.managedFields;
  else metadata.managedFields = kept;
}

const INVALID_AFTER_ADMISSION =
  '.metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating admission controller; please fix your requests';

/** Returns the entries in their stored form, or why they are invalid. */
function entriesOf(
  entries: ManagedFieldsEntry[],
  before: ManagedFieldsEntry[] | undefined,
): ManagedFieldsEntry[] | undefined | string {
  return deepEqual(entries, before) ? before : readEntries(entries);
}

/**
 * Clones an object, which costs a third of parsing it again. Shares managedFields entries, because nothing modifies
 * them in place.
 */
export function copyOf(old: KubeObject, { withOwners }: { readonly withOwners: boolean }): KubeObject {
  const { managedFields } = old.metadata;
  if (managedFields === undefined) return deepClone(old);
  const metadata: Record<string, unknown> = {};
  for (const field of Object.keys(old.metadata)) {
    if (field !== 'managedFields') metadata[field] = (old.metadata as Record<string, unknown>)[field];
  }
  const copy: KubeObject = deepClone({ ...old, metadata });
  if (withOwners) copy.metadata.managedFields = managedFields;
  return copy;
}

/** Ignores times of managedFields. */
export function isSameMetadata(next: ObjectMeta, old: ObjectMeta): boolean {
  const [a, b] = [next as Record<string, unknown>, old as Record<string, unknown>];
  return hasAllOf(a, b) && hasAllOf(b, a) && isSameOwners(next.managedFields, old.managedFields);
}

function hasAllOf(a: Record<string, unknown>, b: Record<string, unknown>): boolean {
  for (const field of Object.keys(b)) {
    if (field !== 'managedFields' && b[field] !== a[field] && !deepEqual(b[field], a[field])) return false;
  }
  return true;
}

function isSameOwners(next: ManagedFieldsEntry[] = [], old: ManagedFieldsEntry[] = []): boolean {
  if (next.length !== old.length) return false;
  return next.every((entry, index) => {
    const before = old[index]!;
    if (entry === before) return true;
    return (
      entry.manager === before.manager &&
      entry.operation === before.operation &&
      entry.apiVersion === before.apiVersion &&
      entry.subresource === before.subresource &&
      deepEqual(entry.fieldsV1, before.fieldsV1)
    );
  });
}
