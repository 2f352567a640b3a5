/**
 * Functions that build Schema values and carry the TypeScript type of the values that the schema describes:
 * `type PodSpec = Infer<typeof podSpec>`. The schema is plain data; the type does not exist at run time. Browser-safe.
 */
import type { Schema, ValidationRule } from '#kube/schema.ts';

declare const described: unique symbol;

/** A schema of values of type T. */
export interface Typed<T> extends Schema {
  readonly [described]?: T;
}

/** The TypeScript type that a schema describes. */
export type Infer<S> = S extends { readonly [described]?: infer T } ? Exclude<T, undefined> : never;

export type IntOrString = number | string;

/** Options that every schema can have in addition to its type. */
interface SchemaOptions<T> {
  readonly default?: T;
  readonly description?: string;
  readonly nullable?: boolean;
  readonly rules?: readonly ValidationRule[];
}

interface TextOptions extends SchemaOptions<string> {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

interface NumberOptions extends SchemaOptions<number> {
  readonly minimum?: number;
  readonly maximum?: number;
}

interface ListSchemaOptions<T> extends SchemaOptions<T[]> {
  /** Server-side apply replaces the whole list. */
  readonly atomic?: boolean;
  /** Scalars without duplicates. */
  readonly set?: boolean;
  /** The field by which strategic merge patch merges elements. Also the map key of apply unless `mapKeys` is given. */
  readonly mergeKey?: string;
  /** The fields by which apply identifies elements; `[]` if only strategic merge patch has a key. */
  readonly mapKeys?: readonly string[];
  /** Strategic merge patch merges scalars instead of replacing the list. */
  readonly merge?: boolean;
  /** A merged element keeps only the fields that the patch contains (volumes). */
  readonly retainKeys?: boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
}

interface MapOptions<T> extends SchemaOptions<Record<string, T>> {
  readonly atomic?: boolean;
}

export interface ObjectOptions<R extends string> extends SchemaOptions<Record<string, unknown>> {
  readonly required?: readonly R[];
  readonly atomic?: boolean;
  readonly retainKeys?: boolean;
  /** Keeps fields that the schema does not have instead of pruning them. */
  readonly open?: boolean;
}

type Properties = Record<string, Schema>;

type ObjectType<P extends Properties, R extends keyof P> = {
  [K in R]: Infer<P[K]>;
} & {
  [K in Exclude<keyof P, R>]?: Infer<P[K]>;
};

type OptionFields = Pick<Schema, 'description' | 'default' | 'nullable' | 'x-kubernetes-validations'>;

/** Returns only the options that are set, so that schemas have no empty keys. */
function optionFields<T>({ default: fallback, description, nullable, rules }: SchemaOptions<T>): OptionFields {
  return {
    ...(description === undefined ? {} : { description }),
    ...(fallback === undefined ? {} : { default: fallback }),
    ...(nullable === undefined ? {} : { nullable }),
    ...(rules === undefined ? {} : { 'x-kubernetes-validations': [...rules] }),
  };
}

export function str(options: TextOptions = {}): Typed<string> {
  const { minLength, maxLength, pattern, format } = options;
  return {
    type: 'string',
    ...(format === undefined ? {} : { format }),
    ...(minLength === undefined ? {} : { minLength }),
    ...(maxLength === undefined ? {} : { maxLength }),
    ...(pattern === undefined ? {} : { pattern }),
    ...optionFields(options),
  };
}

/** A choice between strings. The inferred type is their union. */
export function oneOf<const W extends readonly [string, ...string[]]>(
  words: W,
  options: SchemaOptions<W[number]> = {},
): Typed<W[number]> {
  return { type: 'string', enum: [...words], ...optionFields(options) };
}

/** A time in RFC 3339 with seconds (metav1.Time). */
export const time = (options: SchemaOptions<string> = {}): Typed<string> => str({ ...options, format: 'date-time' });

/** A time in RFC 3339 with microseconds (metav1.MicroTime), which has the same format in schemas. */
export const microTime = time;

/** Bytes in base64. */
export const bytes = (options: SchemaOptions<string> = {}): Typed<string> => str({ ...options, format: 'byte' });

function numeric(type: 'integer' | 'number', format: string | undefined, options: NumberOptions): Typed<number> {
  const { minimum, maximum } = options;
  return {
    type,
    ...(format === undefined ? {} : { format }),
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...optionFields(options),
  };
}

export const int32 = (options: NumberOptions = {}): Typed<number> => numeric('integer', 'int32', options);
export const int64 = (options: NumberOptions = {}): Typed<number> => numeric('integer', 'int64', options);
export const num = (options: NumberOptions = {}): Typed<number> => numeric('number', 'double', options);

export function bool(options: SchemaOptions<boolean> = {}): Typed<boolean> {
  return { type: 'boolean', ...optionFields(options) };
}

/** An integer or a string: a port or its name, a count or a percentage. */
export function intOrString(options: SchemaOptions<IntOrString> = {}): Typed<IntOrString> {
  return { 'x-kubernetes-int-or-string': true, ...optionFields(options) };
}

/** The array by whose identity isQuantity() recognises quantities. */
const QUANTITY_FORMS: Schema[] = [{ type: 'string' }, { type: 'number' }];

/** A quantity: `500m`, `1Gi`, or a number, which may have a fraction. The decoder of objects checks the syntax. */
export function quantity(options: SchemaOptions<IntOrString> = {}): Typed<IntOrString> {
  return { oneOf: QUANTITY_FORMS, ...optionFields(options) };
}

/** Reports whether quantity() made the schema. A user's schema with the same content is not treated as a quantity. */
export function isQuantity(schema: Schema): boolean {
  return schema.oneOf === QUANTITY_FORMS;
}

export function list<S extends Schema>(items: S, options: ListSchemaOptions<Infer<S>> = {}): Typed<Infer<S>[]> {
  const { atomic, set, mergeKey, merge, retainKeys, minItems, maxItems } = options;
  const mapKeys = options.mapKeys ?? (mergeKey === undefined ? [] : [mergeKey]);
  const isMerged = mergeKey !== undefined || merge === true;
  return {
    type: 'array',
    items,
    ...(minItems === undefined ? {} : { minItems }),
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(atomic === true ? { 'x-kubernetes-list-type': 'atomic' } : {}),
    ...(set === true ? { 'x-kubernetes-list-type': 'set' } : {}),
    ...(mapKeys.length > 0 ? { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [...mapKeys] } : {}),
    ...(isMerged ? { 'x-kubernetes-patch-strategy': retainKeys === true ? 'merge,retainKeys' : 'merge' } : {}),
    ...(mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': mergeKey }),
    ...optionFields(options),
  };
}

export function map<S extends Schema>(values: S, options: MapOptions<Infer<S>> = {}): Typed<Record<string, Infer<S>>> {
  return {
    type: 'object',
    additionalProperties: values,
    ...(options.atomic === true ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...optionFields(options),
  };
}

export function obj<P extends Properties, R extends keyof P & string = never>(
  properties: P,
  options: ObjectOptions<R> = {},
): Typed<ObjectType<P, R>> & { properties: P } {
  const { required, atomic, retainKeys, open } = options;
  return {
    type: 'object',
    properties,
    ...(required === undefined || required.length === 0 ? {} : { required: [...required] }),
    ...(atomic === true ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...(retainKeys === true ? { 'x-kubernetes-patch-strategy': 'retainKeys' } : {}),
    ...(open === true ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
    ...optionFields(options),
  };
}

/** Returns a copy of a shared schema with other options, for example a default. */
export function overrideOptions<S extends Schema>(schema: S, options: SchemaOptions<Partial<Infer<S>>>): S {
  return { ...schema, ...optionFields(options) };
}

/** Any JSON value. */
export function anything(options: SchemaOptions<unknown> = {}): Typed<unknown> {
  return { 'x-kubernetes-preserve-unknown-fields': true, ...optionFields(options) };
}
