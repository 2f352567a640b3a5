/**
 * Converts a field set to the FieldsV1 of an entry by its text, which is what is stored and what objects of the same
 * shape share.
 */
import { hasSameFields, type FieldSet } from '#kube/field-sets/field-set.ts';
import { fieldsText } from '#kube/field-sets/fields-v1.ts';
import type { FieldsV1 } from '#engine/encoding/stored-object.ts';
import { fieldsOfText, isSharedFields } from '#engine/encoding/stored-object.ts';

/** The last sets, because objects of the same shape follow each other. Large ones are not cached. */
const recent: { readonly set: FieldSet; readonly fields: FieldsV1 }[] = [];
const MAX_RECENT = 8;
let oldest = 0;

export function fieldsV1Of(set: FieldSet): FieldsV1 {
  for (const known of recent) if (hasSameFields(known.set, set)) return known.fields;
  const fields = newFieldsV1Of(set);
  if (isSharedFields(fields)) {
    recent[oldest] = { set, fields };
    oldest = (oldest + 1) % MAX_RECENT;
  }
  return fields;
}

/** For a set that differs from the previous ones. */
export function newFieldsV1Of(set: FieldSet): FieldsV1 {
  return fieldsOfText(fieldsText(set));
}
