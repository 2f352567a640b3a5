/** Checks whether every value has the type that Go's decoder expects. decode-type-error.ts explains a mismatch. */
import { formatCheck } from '#engine/registry/structural/formats.ts';
import { isInteger } from '#engine/registry/structural/json-value.ts';
import { propertiesOf, typesOf, valueSchema } from '#engine/registry/structural/keywords.ts';
import { findQuantityError } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

type TypeCheck = (value: unknown) => boolean;

const INT32_MAX = 2 ** 31 - 1;

/** Go reads null as an absent value. */
export function compileDecodes(schema: Schema): TypeCheck {
  if (isQuantity(schema))
    return (value) => value === null || value === undefined || findQuantityError(value) === undefined;
  const types = typesOf(schema);
  const accepts = (type: string) => types.length === 0 || types.includes(type);
  const acceptsBoolean = accepts('boolean');
  const fitsString = accepts('string') ? (decodedFormat(schema) ?? always) : never;
  const fitsNumber = numberFits(schema, accepts);
  const fitsArray = accepts('array') ? arrayFits(schema) : never;
  const fitsObject = accepts('object') ? objectFits(schema) : never;
  return (value) => {
    switch (typeof value) {
      case 'string':
        return fitsString(value);
      case 'number':
        return fitsNumber(value);
      case 'boolean':
        return acceptsBoolean;
      default:
        if (value === null || value === undefined) return true;
        return Array.isArray(value) ? fitsArray(value) : fitsObject(value as Record<string, unknown>);
    }
  };
}

const always = () => true;
const never = () => false;

/** Times and bytes are separate types in Go; other formats are left to validation. */
export function decodedFormat({ type, format }: Schema): ((value: string) => boolean) | undefined {
  return type === 'string' && (format === 'date-time' || format === 'byte') ? formatCheck(format) : undefined;
}

function numberFits({ format }: Schema, accepts: (type: string) => boolean): (value: number) => boolean {
  if (accepts('number')) return always;
  if (!accepts('integer')) return never;
  return format === 'int32' ? isInt32 : isInteger;
}

export function isInt32(value: number): boolean {
  return Number.isInteger(value) && value >= -INT32_MAX - 1 && value <= INT32_MAX;
}

function arrayFits({ items }: Schema): (list: readonly unknown[]) => boolean {
  if (items === undefined) return always;
  const fits = compileDecodes(items);
  // Go would decode null to an empty item. Rejecting it saves the rules from handling that.
  const nullable = items.nullable === true;
  return (list) => list.every((item) => (item !== null || nullable) && fits(item));
}

function objectFits(schema: Schema): (object: Record<string, unknown>) => boolean {
  const known = propertiesOf(schema, compileDecodes);
  const values = valueSchema(schema);
  const others = values === undefined ? undefined : compileDecodes(values);
  if (known.size === 0 && others === undefined) return always;
  return (object) => {
    for (const key in object) {
      const fits = known.get(key) ?? others;
      if (fits !== undefined && !fits(object[key])) return false;
    }
    return true;
  };
}
