/**
 * The fields that the creator of an object owns. Objects of a kind mostly have the shape of a recent one, so these are
 * cached.
 */
import { addsExactly, expectFields, type ExpectedFields } from '#kube/field-sets/adds-exactly.ts';
import { compareFields, type FieldComparison } from '#kube/field-sets/compare-fields.ts';
import { isEmpty, union } from '#kube/field-sets/field-set.ts';
import { FieldTypeError } from '#kube/field-sets/list-item.ts';
import type { Schema } from '#kube/schema.ts';
import type { FieldsV1 } from '#engine/encoding/stored-object.ts';
import { emptyObject, stripMetadata, type FieldScope } from '#engine/managed-fields/field-scope.ts';
import { newFieldsV1Of } from '#engine/managed-fields/fields-text.ts';
import { isSharedFields } from '#engine/encoding/stored-object.ts';

interface Shape {
  readonly expected: ExpectedFields;
  readonly fieldsV1: FieldsV1;
}

/** Shapes by the schema of the kind, most recent first. Large ones rarely repeat. */
const shapes = new WeakMap<Schema, { readonly recent: readonly Shape[]; readonly misses: number }>();
const MAX_SHAPES = 3;
/** After this many misses in a row, only one shape is compared. */
const MAX_MISSES = 16;

/** Returns undefined if nothing can be owned, or if list items have no key, which is rejected later. */
export function fieldsOfNew(object: Record<string, unknown>, scope: FieldScope): FieldsV1 | undefined {
  const { schema } = scope;
  const empty = emptyObject(scope);
  const { recent, misses } = shapes.get(schema) ?? { recent: [], misses: 0 };
  for (const shape of misses > MAX_MISSES ? recent.slice(0, 1) : recent) {
    if (!addsExactly(object, empty, shape.expected)) continue;
    if (misses > 0) shapes.set(schema, { recent, misses: 0 });
    return shape.fieldsV1;
  }
  const compared = tryCompare(empty, object, schema);
  if (compared === undefined) return undefined;
  const { added, modified } = compared;
  const written = stripMetadata(union(added, modified));
  if (isEmpty(written)) return undefined;
  const fieldsV1 = newFieldsV1Of(written);
  const expected = isEmpty(modified) && isSharedFields(fieldsV1) ? expectFields(added, schema) : undefined;
  if (expected !== undefined) {
    const shape = { expected, fieldsV1 };
    shapes.set(schema, { recent: [shape, ...recent.slice(0, MAX_SHAPES - 1)], misses: misses + 1 });
  }
  return fieldsV1;
}

function tryCompare(...args: Parameters<typeof compareFields>): FieldComparison | undefined {
  try {
    return compareFields(...args);
  } catch (error) {
    if (!(error instanceof FieldTypeError)) throw error;
    return undefined;
  }
}
