/**
 * Refuses fields that a kind does not have, by their full path. The API server does not prune them (custom-kind.ts): a
 * request is either honoured or refused, never dropped silently. unsupported.ts has explanations for known fields.
 */
import { explainUnsupported } from '#api/validation/devices/unsupported.ts';
import { forbiddenField, invalidValue, type FieldError } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { findQuantityError } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

/** Limits the size of the response: an object may have thousands of unknown fields. */
const MAX_ERRORS = 50;

interface Walk {
  readonly errors: FieldError[];
  /** The prefix that is removed from paths before unsupported.ts is asked: `spec.template.`. */
  readonly prefix: string;
}

/**
 * Returns an error for every field below `value` that `schema` does not have, and for every invalid quantity, which the
 * schema of a custom kind cannot check. `prefix` is the part of the path above the spec of an instance.
 */
export function checkUnknownFields(schema: Schema, value: unknown, path: string, prefix: string): FieldError[] {
  const walk: Walk = { errors: [], prefix };
  visit(walk, schema, value, path);
  return walk.errors;
}

function visit(walk: Walk, schema: Schema, value: unknown, path: string): void {
  if (walk.errors.length >= MAX_ERRORS) return;
  if (isQuantity(schema)) return checkQuantity(walk, value, path);
  const { items, properties, additionalProperties } = schema;
  if (Array.isArray(value)) {
    if (items !== undefined) for (const [i, item] of value.entries()) visit(walk, items, item, `${path}[${i}]`);
    return;
  }
  if (!isRecord(value)) return;
  if (isSchema(additionalProperties)) {
    for (const [key, child] of Object.entries(value)) visit(walk, additionalProperties, child, `${path}[${key}]`);
    return;
  }
  if (properties === undefined) return;
  for (const [key, child] of Object.entries(value)) {
    const known = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (known !== undefined) visit(walk, known, child, `${path}.${key}`);
    // Tools write `creationTimestamp: null`; null means that a field is not set.
    else if (child !== null) refuseField(walk, `${path}.${key}`);
  }
}

const isSchema = (value: Schema | boolean | undefined): value is Schema => typeof value === 'object';

function refuseField({ errors, prefix }: Walk, path: string): void {
  if (errors.length >= MAX_ERRORS) return;
  const relative = path.startsWith(prefix) ? path.slice(prefix.length) : path;
  errors.push(forbiddenField(path, explainUnsupported(relative.replaceAll(/\[\d+\]/g, '[]')) ?? 'unknown field'));
}

function checkQuantity({ errors }: Walk, value: unknown, path: string): void {
  const error = value === undefined || value === null ? undefined : findQuantityError(value);
  if (error !== undefined) errors.push(invalidValue(path, value, error));
}
