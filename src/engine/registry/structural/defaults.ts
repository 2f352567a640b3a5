/**
 * Fills in defaults, in place. A field that is absent, or null where null is not allowed, takes its default; a null
 * that is not allowed and has no default is removed. Nothing is made up inside of objects that are absent.
 */
import { hasDefault, isLeaf, propertiesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { deepClone } from '#kube/deep.ts';
import type { Schema } from '#kube/schema.ts';

/** Gets objects and arrays only. */
type Defaulter = (value: object) => void;

interface Field {
  readonly nullable: boolean;
  /** With the defaults inside of it; undefined where there is none. */
  readonly fallback: unknown;
  readonly fill: Defaulter;
}

export function compileDefaults(schema: Schema): Defaulter {
  return defaulter(schema);
}

const nothing: Defaulter = () => {};

function defaulter(schema: Schema): Defaulter {
  if (isLeaf(schema)) return nothing;
  const fields = propertiesOf(schema, fieldOf);
  const values = valueSchema(schema);
  const others = values === undefined ? undefined : fieldOf(values);
  const items = schema.items === undefined ? undefined : fieldOf(schema.items);
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

function fieldOf(schema: Schema): Field {
  const fill = defaulter(schema);
  const fallback = hasDefault(schema) ? deepClone(schema.default) : undefined;
  // Done once here, so that a default needs only a copy later.
  if (typeof fallback === 'object' && fallback !== null) fill(fallback);
  return { nullable: schema.nullable === true, fallback, fill };
}

function fillFields(object: Record<string, unknown>, fields: Map<string, Field>, others: Field | undefined): void {
  for (const key in object) {
    const value = object[key];
    if (typeof value !== 'object') continue;
    const field = fields.get(key) ?? others;
    if (field === undefined) continue;
    if (value !== null) field.fill(value);
    else if (field.nullable) continue;
    else if (field.fallback === undefined) delete object[key];
    else object[key] = deepClone(field.fallback);
  }
}

/** A null in a list stays where it has no default: removing it would move its neighbours. */
function fillItems(list: unknown[], { nullable, fallback, fill }: Field): void {
  for (let i = 0; i < list.length; i++) {
    const item = list[i];
    if (typeof item !== 'object') continue;
    if (item !== null) fill(item);
    else if (!nullable && fallback !== undefined) list[i] = deepClone(fallback);
  }
}
