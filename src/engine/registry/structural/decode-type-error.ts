/**
 * Finds the first value that does not match the Go type of a built-in kind, with the messages of Go's decoder:
 * kube-apiserver answers these with 400 before validation. Go type names are guessed from field names.
 */
import { decodedFormat, isInt32 } from '#engine/registry/structural/decode.ts';
import { isInteger, jsonTypeOf } from '#engine/registry/structural/json-value.ts';
import { typesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { findQuantityError } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

/** A position in Go's terms: the struct that holds the field, and the path of fields without indexes and map keys. */
interface Place {
  readonly struct: string;
  readonly field: string;
}

interface SchemaDecoder {
  readonly schema: Schema;
  /** Reports whether Go would decode the object. */
  decodes(object: Record<string, unknown>): boolean;
}

export function decodeTypeError(object: Record<string, unknown>, compiled: SchemaDecoder): string | undefined {
  if (compiled.decodes(object)) return undefined;
  const kind = typeof object['kind'] === 'string' ? object['kind'] : 'Object';
  return findFieldError(object, compiled.schema, { struct: kind, field: '' });
}

function findError(value: unknown, schema: Schema, place: Place, inner: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isQuantity(schema)) return findQuantityError(value);
  const types = typesOf(schema);
  const got = jsonTypeOf(value);
  const fits = types.length === 0 || types.includes(got) || (got === 'integer' && types.includes('number'));
  if (!fits || (typeof value === 'number' && overflows(value, schema))) {
    const wanted = types.length > 1 ? 'intstr.IntOrString' : goType(schema, inner);
    return `json: cannot unmarshal ${goValue(value, schema)} into Go struct field ${place.struct}.${place.field} of type ${wanted}`;
  }
  if (typeof value === 'string') return findTextError(value, schema);
  if (Array.isArray(value)) {
    const { items } = schema;
    return items && firstOf(value, (item) => findItemError(item, items, place, inner));
  }
  if (typeof value === 'object') {
    return findFieldError(value as Record<string, unknown>, schema, { struct: inner, field: place.field }, place);
  }
  return undefined;
}

function findItemError(item: unknown, schema: Schema, place: Place, inner: string): string | undefined {
  if (item !== null || schema.nullable === true) return findError(item, schema, place, inner);
  return `json: cannot unmarshal null into Go struct field ${place.struct}.${place.field} of type ${goType(schema, inner)}`;
}

/** `outer` is the position of a map: Go reports its values by the map's own field. */
function findFieldError(
  object: Record<string, unknown>,
  schema: Schema,
  inside: Place,
  outer: Place = inside,
): string | undefined {
  const values = valueSchema(schema);
  return firstOf(Object.entries(object), ([key, value]) => {
    const property = Object.hasOwn(schema.properties ?? {}, key) ? schema.properties?.[key] : undefined;
    if (property !== undefined) {
      const field = inside.field === '' ? key : `${inside.field}.${key}`;
      return findError(value, property, { struct: inside.struct, field }, structName(inside, key));
    }
    return values && findError(value, values, outer, inside.struct);
  });
}

function firstOf<T>(items: Iterable<T>, find: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const found = find(item);
    if (found !== undefined) return found;
  }
  return undefined;
}

/**
 * Guesses a struct name: PodSpec for a Pod's spec, Container for containers. Right for most fields, and readable for
 * the others.
 */
function structName({ struct, field }: Place, key: string): string {
  if (key === 'metadata') return 'ObjectMeta';
  if (field === '' && (key === 'spec' || key === 'status')) return struct + capital(key);
  if (key === 'template') return 'PodTemplateSpec';
  if (key === 'spec' && struct === 'PodTemplateSpec') return 'PodSpec';
  const single = key.endsWith('ies') ? `${key.slice(0, -3)}y` : key.replace(/(?<!s)s$/, '');
  return capital(single);
}

const capital = (word: string) => word.charAt(0).toUpperCase() + word.slice(1);

function goType(schema: Schema, struct: string): string {
  switch (schema.type) {
    case 'boolean':
      return 'bool';
    case 'integer':
      return schema.format === 'int32' ? 'int32' : 'int64';
    case 'number':
      return 'float64';
    case 'string':
      return schema.format === 'byte' ? '[]uint8' : 'string';
    case 'array':
      return `[]${schema.items === undefined ? 'interface {}' : goType(schema.items, struct)}`;
    default: {
      const values = valueSchema(schema);
      if (values !== undefined && schema.properties === undefined) return `map[string]${goType(values, struct)}`;
      return `v1.${struct}`;
    }
  }
}

function goValue(value: unknown, schema: Schema): string {
  const got = jsonTypeOf(value);
  if (got === 'boolean') return 'bool';
  if (got !== 'integer' && got !== 'number') return got;
  // Go prints the number if only its size or fraction is wrong.
  return schema.type === 'integer' || schema.type === 'number' ? `number ${String(value)}` : 'number';
}

function overflows(value: number, { type, format }: Schema): boolean {
  if (type !== 'integer') return false;
  return format === 'int32' ? !isInt32(value) : !isInteger(value);
}

export function findTextError(value: string, schema: Schema): string | undefined {
  const fits = decodedFormat(schema);
  if (fits === undefined || fits(value)) return undefined;
  if (schema.format === 'byte') {
    const bad = value.search(/[^A-Za-z0-9+/]/);
    return `illegal base64 data at input byte ${bad < 0 ? value.length - (value.length % 4) : bad}`;
  }
  const shown = JSON.stringify(value);
  return `parsing time ${shown} as "2006-01-02T15:04:05Z07:00": cannot parse ${shown} as "2006"`;
}
