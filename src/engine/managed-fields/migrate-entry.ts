/**
 * Updates entries from before a schema change: the owner of items of a list or map that is atomic now owns it as a
 * whole.
 */
import { parseFieldsV1 } from '#kube/field-sets/fields-v1.ts';
import { adaptFields } from '#kube/field-sets/named-fields.ts';
import type { Schema } from '#kube/schema.ts';
import { headOf, makeEntry, type ManagedEntry } from '#engine/managed-fields/entries.ts';
import type { FieldsV1 } from '#engine/encoding/stored-object.ts';
import type { FieldScope } from '#engine/managed-fields/field-scope.ts';

/** Field sets that match a schema. Objects share their sets, so one check serves many. */
const fitting = new WeakMap<FieldsV1, Schema>();

/** Returns the same entry if there is nothing to update, or if its version is no longer served. */
export function migrateEntry(entry: ManagedEntry, scope: FieldScope): ManagedEntry {
  const { fieldsV1 } = entry;
  const schema = scope.schemaIn(entry.apiVersion);
  if (schema === undefined || fitting.get(fieldsV1) === schema) return entry;
  const fields = parseFieldsV1(fieldsV1);
  const mended = adaptFields(fields, schema);
  if (mended !== fields) return makeEntry(headOf(entry), mended);
  fitting.set(fieldsV1, schema);
  return entry;
}
