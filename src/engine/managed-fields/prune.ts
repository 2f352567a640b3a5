/**
 * Removes fields that an applier no longer sets, unless another manager owns them. Removing an item removes everything
 * below it, so two steps restore what is not the applier's: fields of other managers, and fields that it never owned.
 */
import { difference, intersection, isEmpty, union, type FieldSet } from '#kube/field-sets/field-set.ts';
import { namedFieldsOf } from '#kube/field-sets/fields-of.ts';
import { addNamedFields } from '#kube/field-sets/named-fields.ts';
import { emptyFields, removeFields } from '#kube/field-sets/remove-fields.ts';
import type { EntryHead } from '#engine/managed-fields/entries.ts';
import type { FieldScope } from '#engine/managed-fields/field-scope.ts';

export interface OwnedFields {
  readonly head: EntryHead;
  readonly fields: FieldSet;
}

/**
 * May be interrupted at each yield. `owners` includes the applier with the fields it sets now (`applied`). Versions differ
 * only in their schemas.
 */
export function* pruneUnset(
  object: unknown,
  last: OwnedFields,
  owners: readonly OwnedFields[],
  applied: FieldSet,
  scope: FieldScope,
): Generator<undefined, unknown> {
  if (isEmpty(difference(last.fields, applied))) return object;
  const schema = scope.schemaIn(last.head.apiVersion);
  if (schema === undefined) return object;
  const lastFields = addNamedFields(last.fields, schema);
  yield undefined;
  const whole = namedFieldsOf(object, schema);
  yield undefined;
  let left = emptyFields(object, lastFields, schema);
  for (const [version, fields] of fieldsByVersion(owners, last.head.apiVersion)) {
    const own = scope.schemaIn(version);
    if (own === undefined) continue;
    const ofObject = own === schema ? whole : namedFieldsOf(object, own);
    yield undefined;
    const kept = union(namedFieldsOf(left, own), addNamedFields(fields, own));
    yield undefined;
    left = emptyFields(object, difference(ofObject, kept), own);
  }
  yield undefined;
  const removed = difference(whole, namedFieldsOf(left, schema));
  return removeFields(object, intersection(removed, lastFields), schema);
}

/** Returns the fields by version, starting with the given one. */
function fieldsByVersion(owners: readonly OwnedFields[], first: string): Map<string, FieldSet> {
  const byVersion = new Map<string, FieldSet>();
  const ordered = [
    ...owners.filter(({ head }) => head.apiVersion === first),
    ...owners.filter(({ head }) => head.apiVersion !== first),
  ];
  for (const { head, fields } of ordered) {
    const known = byVersion.get(head.apiVersion);
    byVersion.set(head.apiVersion, known === undefined ? fields : union(known, fields));
  }
  return byVersion;
}
