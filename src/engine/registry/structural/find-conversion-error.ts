/**
 * Finds the first value of a strategically patched object that does not match its Go type, with the messages of
 * Kubernetes' unstructured converter, which replaces the JSON decoder there. Go type names are exact only where the
 * schema determines them.
 */
import { isInt32 } from '#engine/registry/structural/decode.ts';
import { findTextError } from '#engine/registry/structural/decode-type-error.ts';
import { isInteger } from '#engine/registry/structural/json-value.ts';
import { typesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { findQuantityError } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

/** Returns undefined if the value matches, or in the few cases where Go would convert it. */
export function findConversionError(value: unknown, schema: Schema): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isQuantity(schema)) return findQuantityError(value);
  const types = typesOf(schema);
  if (types.length === 0) return undefined;
  if (types.length > 1 || schema.format === 'date-time') return findParsedError(value, schema, types);
  switch (schema.type) {
    case 'object':
      return findObjectError(value, schema);
    case 'array':
      return findListError(value, schema);
    default:
      return schema.format === 'byte' ? findBytesError(value, schema) : findScalarError(value, schema);
  }
}

/** Formats the reflect.Kind like `%v`. */
function kindOf(value: unknown): string {
  if (Array.isArray(value)) return 'slice';
  switch (typeof value) {
    case 'number':
      return isInteger(value) ? 'int64' : 'float64';
    case 'boolean':
      return 'bool';
    case 'object':
      return 'map';
    default:
      return 'string';
  }
}

function findObjectError(value: unknown, schema: Schema): string | undefined {
  const values = valueSchema(schema);
  const isMap = values !== undefined && schema.properties === undefined;
  const kind = kindOf(value);
  if (kind !== 'map') return isMap ? `cannot restore map from ${kind}` : `cannot restore struct from: ${kind}`;
  const object = value as Record<string, unknown>;
  // In the order of the struct's fields, regardless of the order in the document.
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const found = Object.hasOwn(object, name) ? findConversionError(object[name], property) : undefined;
    if (found !== undefined) return found;
  }
  if (!isMap) return undefined;
  for (const key of Object.keys(object)) {
    const found = findConversionError(object[key], values);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findListError(value: unknown, { items }: Schema): string | undefined {
  if (!Array.isArray(value)) return `cannot restore slice from ${kindOf(value)}`;
  for (const item of value) {
    const found = items && findConversionError(item, items);
    if (found !== undefined) return found;
  }
  return undefined;
}

function findBytesError(value: unknown, schema: Schema): string | undefined {
  if (typeof value !== 'string') return `cannot restore slice from ${kindOf(value)}`;
  const found = findTextError(value, schema);
  return found === undefined ? undefined : `error decoding from json: ${found}`;
}

/** Checks types with their own JSON parsing: times, and numbers that may be strings. */
function findParsedError(value: unknown, schema: Schema, types: readonly string[]): string | undefined {
  const kind = kindOf(value);
  if (types.length > 1 && kind === 'int64') return undefined;
  if (kind === 'string') return findTextError(value as string, schema);
  const got = { int64: 'number', float64: 'number', slice: 'array', map: 'object' }[kind] ?? kind;
  return `json: cannot unmarshal ${got} into Go value of type string`;
}

function findScalarError(value: unknown, schema: Schema): string | undefined {
  const kind = kindOf(value);
  const wanted = goKind(schema);
  if (wanted === 'float64') return kind === 'int64' || kind === 'float64' ? undefined : `unrecognized type: ${wanted}`;
  if (wanted === 'int32' || wanted === 'int64') {
    if (kind === 'float64') return `cannot convert float64 to ${wanted}`;
    if (kind !== 'int64') return `unrecognized type: ${wanted}`;
    return wanted === 'int32' && !isInt32(value as number) ? `cannot convert int64 to int32` : undefined;
  }
  if (kind === wanted) return undefined;
  // Go converts integers to strings, which JSON does not; it supports no other pairs.
  return wanted === 'string' && kind === 'int64' ? 'cannot convert int64 to string' : `unrecognized type: ${wanted}`;
}

function goKind({ type, format }: Schema): string {
  switch (type) {
    case 'boolean':
      return 'bool';
    case 'integer':
      return format === 'int32' ? 'int32' : 'int64';
    case 'number':
      return 'float64';
    default:
      return 'string';
  }
}
