/** A set as the FieldsV1 of an entry, from its text: that is what is stored, and what objects of one shape share. */
import { sameFields, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsText } from '#kube/field-sets/fields-v1.ts';
import type { FieldsV1 } from '#engine/managed-fields/entries.ts';
import { fieldsOfText, isShared } from '#engine/managed-fields/stored-owners.ts';

/** Objects of one shape come one after the other: what was written for the last ones is written again. Large ones are not. */
const recent: { readonly set: FieldSet; readonly fields: FieldsV1 }[] = [];
const MAX_RECENT = 8;
let oldest = 0;

export function fieldsV1Of(set: FieldSet): FieldsV1 {
  for (const known of recent) if (sameFields(known.set, set)) return known.fields;
  const fields = newFieldsV1Of(set);
  if (isShared(fields)) {
    recent[oldest] = { set, fields };
    oldest = (oldest + 1) % MAX_RECENT;
  }
  return fields;
}

/** For a set that is known to be another than those before it. */
export function newFieldsV1Of(set: FieldSet): FieldsV1 {
  return fieldsOfText(fieldsText(set));
}
