/**
 * Sets defaults, in place. A field that is absent, or null where null is not allowed, gets its default; a null that is
 * not allowed and has no default is removed. Nothing is set inside absent objects.
 *
 * With `dropEmpty`, the same walk removes empty maps and lists unless they are required, because a Go struct omits them
 * (omitempty). Objects with fields of their own stay, because `emptyDir: {}` has a meaning.
 */
import { hasDefault, isLeaf, isMap, propertiesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { deepClone } from '#kube/deep.ts';
import type { Schema } from '#kube/schema.ts';

/** Receives objects and arrays only. */
type Defaulter = (value: object) => void;

interface Field {
  readonly nullable: boolean;
  /** The default including nested defaults; undefined if there is none. */
  readonly fallback: unknown;
  readonly fill: Defaulter;
  /** True if the field is a map or list that is removed if it is empty. */
  readonly omitEmpty: boolean;
}

interface DefaultOptions {
  readonly dropEmpty?: boolean;
}

export function compileDefaults(schema: Schema, { dropEmpty = false }: DefaultOptions = {}): Defaulter {
  return defaulter(schema, dropEmpty);
}

const nothing: Defaulter = () => {};

function defaulter(schema: Schema, dropEmpty: boolean): Defaulter {
  if (isLeaf(schema)) return nothing;
  const required = new Set(schema.required);
  const fields = propertiesOf(schema, (property, name) => fieldOf(property, dropEmpty, required.has(name)));
  const values = valueSchema(schema);
  const others = values === undefined ? undefined : fieldOf(values, dropEmpty, true);
  const items = schema.items === undefined ? undefined : fieldOf(schema.items, dropEmpty, true);
  const absent = [...fields].filter(([, field]) => field.fallback !== undefined);
  return (value) => {
    if (Array.isArray(value)) {
      if (items !== undefined) fillItems(value, items);
    } else {
      fillFields(value as Record<string, unknown>, fields, others);
      for (const [name, { fallback }] of absent) {
        if (!Object.hasOwn(value, name)) (value as Record<string, unknown>)[name] = deepClone(fallback);
      }
    }
  };
}

function fieldOf(schema: Schema, dropEmpty: boolean, required: boolean): Field {
  const fill = defaulter(schema, dropEmpty);
  const fallback = hasDefault(schema) ? deepClone(schema.default) : undefined;
  // Applied once here, so that a default only needs to be copied later.
  if (typeof fallback === 'object' && fallback !== null) fill(fallback);
  const plain = schema.type === 'array' || (isMap(schema) && schema.properties === undefined);
  return { nullable: schema.nullable === true, fallback, fill, omitEmpty: dropEmpty && !required && plain };
}

function fillFields(object: Record<string, unknown>, fields: Map<string, Field>, others: Field | undefined): void {
  for (const key in object) {
    const value = object[key];
    if (typeof value !== 'object') continue;
    const field = fields.get(key) ?? others;
    if (field === undefined) continue;
    if (value !== null) {
      field.fill(value);
      if (field.omitEmpty && isEmpty(value)) delete object[key];
    } else if (field.nullable) continue;
    else if (field.fallback === undefined) delete object[key];
    else object[key] = deepClone(field.fallback);
  }
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** A null in a list stays if it has no default: removing it would shift the other items. */
function fillItems(list: unknown[], { nullable, fallback, fill }: Field): void {
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    if (typeof item !== 'object') continue;
    if (item !== null) fill(item);
    else if (!nullable && fallback !== undefined) list[i] = deepClone(fallback);
  }
}
