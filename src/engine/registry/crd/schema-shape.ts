/**
 * Checks that every keyword of a schema has the right type. kube-apiserver does this by decoding into Go structs; the
 * other checks rely on it.
 */
import { allBranches } from '#engine/registry/crd/schema-tree.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { anything, bool, int64, list, map, num, obj, str } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const texts = list(str());
const objects = obj({}, { open: true });

const keywords = compileSchema(
  obj(
    {
      type: str(),
      format: str(),
      title: str(),
      description: str(),
      nullable: bool(),
      enum: list(anything()),
      properties: map(objects),
      required: texts,
      minProperties: int64(),
      maxProperties: int64(),
      items: objects,
      minItems: int64(),
      maxItems: int64(),
      uniqueItems: bool(),
      minimum: num(),
      maximum: num(),
      exclusiveMinimum: bool(),
      exclusiveMaximum: bool(),
      multipleOf: num(),
      minLength: int64(),
      maxLength: int64(),
      pattern: str(),
      allOf: list(objects),
      anyOf: list(objects),
      oneOf: list(objects),
      not: objects,
      'x-kubernetes-preserve-unknown-fields': bool(),
      'x-kubernetes-embedded-resource': bool(),
      'x-kubernetes-int-or-string': bool(),
      'x-kubernetes-list-type': str(),
      'x-kubernetes-list-map-keys': texts,
      'x-kubernetes-map-type': str(),
      'x-kubernetes-validations': list(
        obj(
          {
            rule: str(),
            message: str(),
            messageExpression: str(),
            reason: str(),
            fieldPath: str(),
            optionalOldSelf: bool(),
          },
          { open: true },
        ),
      ),
    },
    { open: true },
  ),
  { root: false },
);

/** Does not descend into a value that is already invalid. */
export function checkSchemaShape(schema: Schema, path: string): FieldError[] {
  if (!isRecord(schema)) return [invalidValue(path, schema, 'must be an object')];
  if (Array.isArray(schema.items)) {
    return [forbiddenField(`${path}.items`, 'items must be a schema object and not an array')];
  }
  const own = keywords.validate(schema).map((error) => ({ ...error, field: `${path}.${error.field}` }));
  const { additionalProperties } = schema;
  if (
    additionalProperties !== undefined &&
    typeof additionalProperties !== 'boolean' &&
    !isRecord(additionalProperties)
  ) {
    own.push(invalidValue(`${path}.additionalProperties`, additionalProperties, 'must be a schema or a boolean'));
  }
  if (own.length > 0) return own;
  return allBranches(schema, path).flatMap((branch) => checkSchemaShape(branch.schema, branch.path));
}
