/**
 * A small vocabulary that builds Schema values and carries the TypeScript type of what they describe:
 * `type PodSpec = Infer<typeof podSpec>`. The schema stays plain data; the type is a phantom that never exists at run
 * time. Browser-safe.
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

/** What every schema may carry besides its type. */
export interface Notes<T> {
  readonly default?: T;
  readonly description?: string;
  readonly nullable?: boolean;
  readonly rules?: readonly ValidationRule[];
}

export interface TextOptions extends Notes<string> {
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly format?: string;
}

export interface NumberOptions extends Notes<number> {
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface ListOptions<T> extends Notes<T[]> {
  /** Replaced as a whole by server-side apply. */
  readonly atomic?: boolean;
  /** Scalars that stand at most once each. */
  readonly set?: boolean;
  /** Strategic merge patch joins the elements: by this field, which also is the apply key unless `mapKeys` differ. */
  readonly mergeKey?: string;
  /** Apply identifies elements by these fields; `[]` where only strategic merge patch knows a key. */
  readonly mapKeys?: readonly string[];
  /** Strategic merge patch joins scalars instead of replacing the list. */
  readonly merge?: boolean;
  /** Each merged element keeps only the fields that the patch names (volumes). */
  readonly retainKeys?: boolean;
  readonly minItems?: number;
  readonly maxItems?: number;
}

export interface MapOptions<T> extends Notes<Record<string, T>> {
  readonly atomic?: boolean;
}

export interface ObjectOptions<R extends string> extends Notes<Record<string, unknown>> {
  readonly required?: readonly R[];
  readonly atomic?: boolean;
  readonly retainKeys?: boolean;
  /** Fields that the schema does not name are kept instead of pruned. */
  readonly open?: boolean;
}

type Properties = Record<string, Schema>;

type ObjectType<P extends Properties, R extends keyof P> = {
  [K in R]: Infer<P[K]>;
} & {
  [K in Exclude<keyof P, R>]?: Infer<P[K]>;
};

type Remarks = Pick<Schema, 'description' | 'default' | 'nullable' | 'x-kubernetes-validations'>;

/** Only what is set, so that schemas print and compare without empty keys. */
function notes<T>({ default: fallback, description, nullable, rules }: Notes<T>): Remarks {
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
    ...notes(options),
  };
}

/** One of the given words; the inferred type is their union. */
export function oneOf<const W extends readonly [string, ...string[]]>(
  words: W,
  options: Notes<W[number]> = {},
): Typed<W[number]> {
  return { type: 'string', enum: [...words], ...notes(options) };
}

/** RFC 3339 with seconds: metav1.Time. */
export const time = (options: Notes<string> = {}): Typed<string> => str({ ...options, format: 'date-time' });

/** RFC 3339 with microseconds: metav1.MicroTime; the same format on the wire. */
export const microTime = time;

/** Base64. */
export const bytes = (options: Notes<string> = {}): Typed<string> => str({ ...options, format: 'byte' });

function numeric(type: 'integer' | 'number', format: string | undefined, options: NumberOptions): Typed<number> {
  const { minimum, maximum } = options;
  return {
    type,
    ...(format === undefined ? {} : { format }),
    ...(minimum === undefined ? {} : { minimum }),
    ...(maximum === undefined ? {} : { maximum }),
    ...notes(options),
  };
}

export const int32 = (options: NumberOptions = {}): Typed<number> => numeric('integer', 'int32', options);
export const int64 = (options: NumberOptions = {}): Typed<number> => numeric('integer', 'int64', options);
export const num = (options: NumberOptions = {}): Typed<number> => numeric('number', 'double', options);

export function bool(options: Notes<boolean> = {}): Typed<boolean> {
  return { type: 'boolean', ...notes(options) };
}

/** A port or a port's name, a count or a percentage. */
export function intOrString(options: Notes<IntOrString> = {}): Typed<IntOrString> {
  return { 'x-kubernetes-int-or-string': true, ...notes(options) };
}

/** The one value by which isQuantity() knows a quantity; in print it is as any other. */
const QUANTITY_FORMS: Schema[] = [{ type: 'string' }, { type: 'number' }];

/** `500m`, `1Gi`, or a bare number, which may have a fraction. Whoever decodes an object checks the grammar. */
export function quantity(options: Notes<IntOrString> = {}): Typed<IntOrString> {
  return { oneOf: QUANTITY_FORMS, ...notes(options) };
}

/** Whether quantity() made it: what a user's schema says of its numbers and strings is left to validation. */
export function isQuantity(schema: Schema): boolean {
  return schema.oneOf === QUANTITY_FORMS;
}

export function list<S extends Schema>(items: S, options: ListOptions<Infer<S>> = {}): Typed<Infer<S>[]> {
  const { atomic, set, mergeKey, merge, retainKeys, minItems, maxItems } = options;
  const mapKeys = options.mapKeys ?? (mergeKey === undefined ? [] : [mergeKey]);
  const joined = mergeKey !== undefined || merge === true;
  return {
    type: 'array',
    items,
    ...(minItems === undefined ? {} : { minItems }),
    ...(maxItems === undefined ? {} : { maxItems }),
    ...(atomic === true ? { 'x-kubernetes-list-type': 'atomic' } : {}),
    ...(set === true ? { 'x-kubernetes-list-type': 'set' } : {}),
    ...(mapKeys.length > 0 ? { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [...mapKeys] } : {}),
    ...(joined ? { 'x-kubernetes-patch-strategy': retainKeys === true ? 'merge,retainKeys' : 'merge' } : {}),
    ...(mergeKey === undefined ? {} : { 'x-kubernetes-patch-merge-key': mergeKey }),
    ...notes(options),
  };
}

export function map<S extends Schema>(values: S, options: MapOptions<Infer<S>> = {}): Typed<Record<string, Infer<S>>> {
  return {
    type: 'object',
    additionalProperties: values,
    ...(options.atomic === true ? { 'x-kubernetes-map-type': 'atomic' } : {}),
    ...notes(options),
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
    ...notes(options),
  };
}

/** The same schema with other notes: a shared piece that has a default here. */
export function noted<S extends Schema>(schema: S, options: Notes<Partial<Infer<S>>>): S {
  return { ...schema, ...notes(options) };
}

/** Any JSON value. */
export function anything(options: Notes<unknown> = {}): Typed<unknown> {
  return { 'x-kubernetes-preserve-unknown-fields': true, ...notes(options) };
}

/** A whole Kubernetes object of any kind. */
export function embedded(options: Notes<Record<string, unknown>> = {}): Typed<Record<string, unknown>> {
  return {
    type: 'object',
    'x-kubernetes-preserve-unknown-fields': true,
    'x-kubernetes-embedded-resource': true,
    ...notes(options),
  };
}
