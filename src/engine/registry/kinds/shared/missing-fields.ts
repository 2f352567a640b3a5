/**
 * Lets the validation of a kind rely on its schema although required fields may be missing: it sees a copy in which
 * they have Go's zero values, as in kube-apiserver. The schema reports the missing fields.
 */
import type { FieldError } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

type CompletenessCheck = (value: unknown) => boolean;

/**
 * Returns a check for missing required fields, or undefined if nothing is required, so that most fields cost nothing.
 */
function completeness(schema: Schema): CompletenessCheck | undefined {
  const { required = [], items, additionalProperties } = schema;
  const fields: [string, CompletenessCheck][] = [];
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const complete = completeness(property);
    if (complete !== undefined) fields.push([name, complete]);
  }
  if (items !== undefined) return listCompleteness(items);
  const values = typeof additionalProperties === 'object' ? completeness(additionalProperties) : undefined;
  if (required.length === 0 && fields.length === 0 && values === undefined) return undefined;
  return (value) => {
    if (!isRecord(value)) return true;
    for (const name of required) if (value[name] === undefined) return false;
    for (const [name, complete] of fields) if (!complete(value[name])) return false;
    return values === undefined || Object.values(value).every(values);
  };
}

/** A null in a list of objects is a missing object. */
function listCompleteness(items: Schema): CompletenessCheck | undefined {
  const complete = completeness(items);
  if (items.type !== 'object' && complete === undefined) return undefined;
  return (value) => !Array.isArray(value) || value.every((item) => item !== null && (complete?.(item) ?? true));
}

/** Wraps a validation so that it never sees a missing required field. */
export function withZeroValues<A extends unknown[]>(
  schema: Schema,
  rules: (object: Record<string, unknown>, ...rest: A) => FieldError[],
): (object: Record<string, unknown>, ...rest: A) => FieldError[] {
  const complete = completeness(schema);
  if (complete === undefined) return rules;
  return (object, ...rest) => {
    if (complete(object)) return rules(object, ...rest);
    const missing: string[] = [];
    const filled = fill(object, schema, '', missing) as Record<string, unknown>;
    return rules(filled, ...rest).filter(({ field }) => !missing.some((path) => isAtOrBelow(field, path)));
  };
}

function isAtOrBelow(field: string, path: string): boolean {
  return field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);
}

/** Returns a copy with zero values. Adds the paths of missing fields to `missing`. */
function fill(value: unknown, schema: Schema, path: string, missing: string[]): unknown {
  if (Array.isArray(value)) {
    const { items = {} } = schema;
    return value.map((item, i) => fill(item ?? zeroOf(items), items, `${path}[${i}]`, missing));
  }
  if (!isRecord(value)) return value;
  const copy: Record<string, unknown> = {};
  const child = (name: string) => (path === '' ? name : `${path}.${name}`);
  for (const [name, field] of Object.entries(value)) {
    if (name === '__proto__') continue;
    const known = schema.properties?.[name] ?? schema.additionalProperties;
    copy[name] = typeof known === 'object' ? fill(field, known, child(name), missing) : field;
  }
  for (const name of schema.required ?? []) {
    if (copy[name] !== undefined) continue;
    missing.push(child(name));
    copy[name] = zeroOf(schema.properties?.[name] ?? {});
  }
  return copy;
}

function zeroOf(schema: Schema): unknown {
  switch (schema.type) {
    case 'object':
      return fill({}, schema, '', []);
    case 'array':
      return [];
    case 'integer':
    case 'number':
      return 0;
    case 'boolean':
      return false;
    default:
      return '';
  }
}
