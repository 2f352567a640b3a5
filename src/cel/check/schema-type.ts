/**
 * Converts a structural schema to a CEL type, as Kubernetes does. Fields are converted when an expression selects them,
 * so that schemas can be large or refer to themselves.
 *
 *   object with properties      object type, its fields under escaped names
 *   additionalProperties        map(string, T)
 *   array                       list(T)
 *   int-or-string               dyn
 *   string: byte, duration, date, date-time          bytes, duration, timestamp, timestamp
 *
 * `nullable` has no effect on the type: nulls appear only at run time. Unlike in Kubernetes, fields allowed by
 * x-kubernetes-preserve-unknown-fields are dyn instead of undefined for policies, so that a policy that reads such a
 * field compiles. The validation rules of a schema see only the fields that it declares (`declaredOnly`).
 */
import type { Schema } from '#kube/schema.ts';
import type { CelType, ObjectType } from '#cel/type.ts';
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, STRING, TIMESTAMP, listOf, mapOf } from '#cel/type.ts';
import { escapeFieldName, isReservedWord, unescapeFieldName } from '#cel/check/field-names.ts';
import { withObjectMeta, withObjectNames } from '#cel/check/object-meta.ts';

/** Limits nested lists and maps, because a schema can refer to itself. */
const MAX_DEPTH = 32;

const STRING_FORMATS: ReadonlyMap<string, CelType> = new Map([
  ['byte', BYTES],
  ['duration', DURATION],
  ['date', TIMESTAMP],
  ['date-time', TIMESTAMP],
]);

/** Messages call the type `name`; nested types are named by their path from there. */
export function schemaType(schema: Schema, name: string): CelType {
  return typeOfSchema(schema, name, 0) ?? DYN;
}

/** Returns the type of a whole object with all its metadata: `object` in a policy. */
export function kindType(schema: Schema, name: string): CelType {
  return schemaType(withObjectMeta(schema), name);
}

/**
 * Returns the type of `self` in a rule of this schema, or undefined if the schema cannot have rules. `root` is true for
 * the schema of a whole object.
 */
export function ruleType(schema: Schema, name: string, root: boolean): CelType | undefined {
  return typeOfSchema(root ? withObjectNames(schema) : schema, name, 0, true);
}

/** Returns undefined if expressions cannot see a value of this schema. */
function typeOfSchema(schema: Schema, name: string, depth: number, declaredOnly = false): CelType | undefined {
  if (depth > MAX_DEPTH) return DYN;
  if (schema['x-kubernetes-int-or-string'] || schema.format === 'int-or-string') return DYN;
  if (schema['x-kubernetes-embedded-resource']) return objectType(withObjectNames(schema), name, declaredOnly);
  switch (schema.type) {
    case 'array': {
      const element = schema.items && typeOfSchema(schema.items, `${name}.@idx`, depth + 1, declaredOnly);
      return element && listOf(element);
    }
    case 'object':
      return typeOfObject(schema, name, depth, declaredOnly);
    case 'string':
      return STRING_FORMATS.get(schema.format ?? '') ?? STRING;
    case 'boolean':
      return BOOL;
    case 'number':
      return DOUBLE;
    case 'integer':
      return INT;
    case undefined:
      return preservesUnknownFields(schema) && !declaredOnly ? DYN : undefined;
  }
}

function typeOfObject(schema: Schema, name: string, depth: number, declaredOnly: boolean): CelType | undefined {
  const values = schema.additionalProperties;
  if (typeof values === 'object') {
    const value = typeOfSchema(values, `${name}.@elem`, depth + 1, declaredOnly);
    return value && mapOf(STRING, value);
  }
  const open = preservesUnknownFields(schema) && !declaredOnly;
  return schema.properties === undefined && open ? DYN : objectType(schema, name, declaredOnly);
}

function objectType(schema: Schema, name: string, declaredOnly: boolean): ObjectType {
  const known = new Map<string, CelType | undefined>();
  return {
    kind: 'object',
    name,
    field(field) {
      const property = findProperty(schema, field);
      if (property === undefined) return preservesUnknownFields(schema) && !declaredOnly ? DYN : undefined;
      // Only names of properties are added, so the schema bounds the map.
      if (!known.has(field))
        known.set(field, typeOfSchema(property, `${name}.${escapeReserved(field)}`, 0, declaredOnly));
      return known.get(field);
    },
  };
}

/** Accepts `x.namespace` for `x.__namespace__`. */
function findProperty(schema: Schema, field: string): Schema | undefined {
  const property = isReservedWord(field) ? field : unescapeFieldName(field);
  if (property === undefined || escapeFieldName(property) !== escapeReserved(field)) return undefined;
  return Object.hasOwn(schema.properties ?? {}, property) ? schema.properties?.[property] : undefined;
}

function escapeReserved(field: string): string {
  return isReservedWord(field) ? `__${field}__` : field;
}

function preservesUnknownFields(schema: Schema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true;
}
