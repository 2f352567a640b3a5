/**
 * What a schema says about ownership: which shapes a value may have, whether lists and maps are owned whole or by item,
 * and which fields are named. Compiled once for a schema, as kube-openapi's schemaconv does; recursive schemas are fine.
 * How values are walked is its neighbours' business.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { compareGoStrings, fieldElement, keyPrefixes } from './path-element.ts';

export type Scalar = 'numeric' | 'string' | 'boolean' | 'untyped';

/** A type that allows several shapes is decided by the value. At least one is there. */
export interface FieldType {
  readonly scalar: Scalar | undefined;
  readonly list: ListType | undefined;
  readonly map: MapType | undefined;
}

export interface ListType {
  readonly kind: 'atomic' | 'set' | 'map';
  /** Of a map, sorted. */
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
  readonly items: FieldType;
}

export interface NamedField {
  /** As FieldsV1 writes it. */
  readonly element: string;
  readonly type: FieldType;
  readonly default: unknown;
}

export interface MapType {
  readonly atomic: boolean;
  readonly fields: ReadonlyMap<string, NamedField>;
  /** Of fields that have no name in the schema; undefined where there may be none. */
  readonly others: FieldType | undefined;
}

type Draft<T> = { -readonly [K in keyof T]: T[K] };

const NO_NAMES: ReadonlyMap<string, NamedField> = new Map();

/** Atomic whatever it holds: the items of a list that says nothing of them. */
const UNTYPED: Draft<FieldType> = { scalar: 'untyped', list: undefined, map: undefined };
UNTYPED.list = unkeyedList('atomic', UNTYPED);
UNTYPED.map = { atomic: true, fields: NO_NAMES, others: UNTYPED };

/** Of what no schema describes: maps are granular, lists atomic. */
export const DEDUCED: FieldType = deducedType();

function deducedType(): FieldType {
  const type: Draft<FieldType> = { scalar: 'untyped', list: UNTYPED.list, map: undefined };
  type.map = { atomic: false, fields: NO_NAMES, others: type };
  return type;
}

const compiled = new WeakMap<Schema, FieldType>();
/** Below `x-kubernetes-preserve-unknown-fields`, which is inherited. */
const compiledOpen = new WeakMap<Schema, FieldType>();

export function fieldTypeOf(schema: Schema, inheritedOpen = false): FieldType {
  const open = inheritedOpen || schema['x-kubernetes-preserve-unknown-fields'] === true;
  const known = open ? compiledOpen : compiled;
  const found = known.get(schema);
  if (found !== undefined) return found;
  const type: Draft<FieldType> = { scalar: undefined, list: undefined, map: undefined };
  known.set(schema, type);
  if (schema.type === undefined || schema.type === 'object') type.map = mapType(schema, open);
  if (schema.type === undefined || schema.type === 'array') type.list = listType(schema, open);
  type.scalar = scalarOf(schema);
  return type;
}

function scalarOf({ type, format }: Schema): Scalar | undefined {
  switch (type) {
    case undefined:
      return 'untyped';
    case 'integer':
    case 'number':
      return 'numeric';
    case 'boolean':
      return 'boolean';
    case 'string':
      return format === undefined || format === 'byte' ? 'string' : 'untyped';
    default:
      return undefined;
  }
}

function listType(schema: Schema, open: boolean): ListType {
  const items = schema.items === undefined ? UNTYPED : fieldTypeOf(schema.items, open);
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  switch (schema['x-kubernetes-list-type']) {
    case 'map':
      return keys.length > 0 ? keyedList(keys, items) : unkeyedList('atomic', items);
    case 'set':
      return unkeyedList('set', items);
    case 'atomic':
      return unkeyedList('atomic', items);
    default:
      return patchedList(schema, items);
  }
}

/** Without a list type, strategic merge patch's hints decide. */
function patchedList(schema: Schema, items: FieldType): ListType {
  const strategy = schema['x-kubernetes-patch-strategy'];
  if (strategy !== 'merge' && strategy !== 'merge,retainKeys') return unkeyedList('atomic', items);
  const key = schema['x-kubernetes-patch-merge-key'];
  return key === undefined ? unkeyedList('set', items) : keyedList([key], items);
}

function keyedList(names: readonly string[], items: FieldType): ListType {
  const keys = [...names].sort(compareGoStrings);
  return { kind: 'map', keys, prefixes: keyPrefixes(keys), items };
}

function unkeyedList(kind: 'atomic' | 'set', items: FieldType): ListType {
  return { kind, keys: [], prefixes: [], items };
}

function mapType(schema: Schema, open: boolean): MapType {
  const fields = new Map<string, NamedField>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    fields.set(name, {
      element: fieldElement(name),
      type: fieldTypeOf(property, open),
      default: property.default,
    });
  }
  if (schema['x-kubernetes-embedded-resource'] === true) nameObjectFields(fields);
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    fields: fields.size === 0 ? NO_NAMES : fields,
    others: othersOf(schema, open),
  };
}

const TEXT: Schema = { type: 'string' };
const TEXTS: Schema = { type: 'object', additionalProperties: TEXT };

/** What matters of ObjectMeta to ownership. */
const EMBEDDED_METADATA: Schema = {
  type: 'object',
  'x-kubernetes-preserve-unknown-fields': true,
  properties: {
    labels: TEXTS,
    annotations: TEXTS,
    finalizers: { type: 'array', items: TEXT, 'x-kubernetes-list-type': 'set' },
    ownerReferences: {
      type: 'array',
      items: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['uid'],
    },
  },
};

/** An embedded object has the fields of every object, whatever its schema says of them. */
function nameObjectFields(fields: Map<string, NamedField>): void {
  const schemas = { apiVersion: TEXT, kind: TEXT, metadata: EMBEDDED_METADATA };
  for (const [name, schema] of Object.entries(schemas)) {
    fields.set(name, { element: fieldElement(name), type: fieldTypeOf(schema), default: undefined });
  }
}

function othersOf({ additionalProperties, properties }: Schema, open: boolean): FieldType | undefined {
  if (isRecord(additionalProperties)) return fieldTypeOf(additionalProperties, open);
  if (additionalProperties !== undefined) return additionalProperties ? DEDUCED : undefined;
  return open || Object.keys(properties ?? {}).length === 0 ? DEDUCED : undefined;
}

export type Shape = 'scalar' | 'list' | 'map';

/** As which of its type's shapes a value is walked. One that fits none, null among them, goes as a map, scalar or list. */
export function shapeOf(type: FieldType, value: unknown): Shape {
  if (typeof value === 'object') {
    if (value === null) return anyShape(type);
    if (Array.isArray(value)) return type.list === undefined ? anyShape(type) : 'list';
    return type.map === undefined ? anyShape(type) : 'map';
  }
  return type.scalar === undefined || value === undefined ? anyShape(type) : 'scalar';
}

function anyShape(type: FieldType): Shape {
  if (type.map !== undefined) return 'map';
  return type.scalar === undefined ? 'list' : 'scalar';
}

/** Fields that the schema does not know are walked all the same: live objects may be older than it. */
export const typeOfField = (map: MapType, name: string): FieldType =>
  map.fields.get(name)?.type ?? map.others ?? DEDUCED;

export const elementOfField = (map: MapType, name: string): string =>
  map.fields.get(name)?.element ?? fieldElement(name);
