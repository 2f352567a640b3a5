/**
 * The part of a schema that matters for ownership: which shapes a value may have, whether lists and maps are owned as a
 * whole or by item, and which fields have a name. Compiled once per schema, like schemaconv of kube-openapi; schemas
 * may be recursive. The other modules of this folder traverse values with it.
 */
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';
import { compareGoStrings, fieldElement, keyPrefixes } from './path-element.ts';

export type ScalarType = 'numeric' | 'string' | 'boolean' | 'untyped';

/** The type of a field. The value decides between several shapes; at least one is defined. */
export interface FieldType {
  readonly scalar: ScalarType | undefined;
  readonly list: FieldListType | undefined;
  readonly map: FieldMapType | undefined;
}

export interface FieldListType {
  readonly kind: 'atomic' | 'set' | 'map';
  /** The sorted keys of a map list. */
  readonly keys: readonly string[];
  readonly prefixes: readonly string[];
  readonly items: FieldType;
}

interface NamedField {
  /** The path element as in FieldsV1. */
  readonly element: string;
  readonly type: FieldType;
  readonly default: unknown;
}

export interface FieldMapType {
  readonly atomic: boolean;
  readonly fields: ReadonlyMap<string, NamedField>;
  /** The type of fields without a name in the schema; undefined if there may be none. */
  readonly others: FieldType | undefined;
}

type Draft<T> = { -readonly [K in keyof T]: T[K] };

const NO_NAMES: ReadonlyMap<string, NamedField> = new Map();

/** An atomic value of any shape: the type of list items without a schema. */
const UNTYPED: Draft<FieldType> = { scalar: 'untyped', list: undefined, map: undefined };
UNTYPED.list = unkeyedList('atomic', UNTYPED);
UNTYPED.map = { atomic: true, fields: NO_NAMES, others: UNTYPED };

/** The type of values without a schema: maps are granular, lists atomic. */
export const DEDUCED: FieldType = deducedType();

function deducedType(): FieldType {
  const type: Draft<FieldType> = { scalar: 'untyped', list: UNTYPED.list, map: undefined };
  type.map = { atomic: false, fields: NO_NAMES, others: type };
  return type;
}

const compiled = new WeakMap<Schema, FieldType>();
/** Types below `x-kubernetes-preserve-unknown-fields`, which is inherited. */
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

function scalarOf({ type, format }: Schema): ScalarType | undefined {
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

function listType(schema: Schema, open: boolean): FieldListType {
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

/** Uses the hints of strategic merge patch for a list without a list type. */
function patchedList(schema: Schema, items: FieldType): FieldListType {
  const strategy = schema['x-kubernetes-patch-strategy'];
  if (strategy !== 'merge' && strategy !== 'merge,retainKeys') return unkeyedList('atomic', items);
  const key = schema['x-kubernetes-patch-merge-key'];
  return key === undefined ? unkeyedList('set', items) : keyedList([key], items);
}

function keyedList(names: readonly string[], items: FieldType): FieldListType {
  const keys = [...names].sort(compareGoStrings);
  return { kind: 'map', keys, prefixes: keyPrefixes(keys), items };
}

function unkeyedList(kind: 'atomic' | 'set', items: FieldType): FieldListType {
  return { kind, keys: [], prefixes: [], items };
}

function mapType(schema: Schema, open: boolean): FieldMapType {
  const fields = new Map<string, NamedField>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    fields.set(name, {
      element: fieldElement(name),
      type: fieldTypeOf(property, open),
      default: property.default,
    });
  }
  if (schema['x-kubernetes-embedded-resource'] === true) addObjectFields(fields);
  return {
    atomic: schema['x-kubernetes-map-type'] === 'atomic',
    fields: fields.size === 0 ? NO_NAMES : fields,
    others: othersOf(schema, open),
  };
}

const TEXT: Schema = { type: 'string' };
const TEXTS: Schema = { type: 'object', additionalProperties: TEXT };

/** The part of ObjectMeta that matters for ownership. */
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

/** Adds the fields that every embedded object has, regardless of its schema. */
function addObjectFields(fields: Map<string, NamedField>): void {
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

/** Returns the shape in which a value is traversed. A value that fits none, such as null, is a map, scalar or list. */
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

/** Returns the type of a field. Fields without a schema have one as well, because live objects may be older than it. */
export const typeOfField = (map: FieldMapType, name: string): FieldType =>
  map.fields.get(name)?.type ?? map.others ?? DEDUCED;

export const elementOfField = (map: FieldMapType, name: string): string =>
  map.fields.get(name)?.element ?? fieldElement(name);
