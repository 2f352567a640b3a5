/** Normalizes parts of a spec for comparison: 1Gi equals 1024Mi, and uuids and MAC addresses ignore case. Pure. */
import { firmware } from '#api/domain/firmware.ts';
import { networkInterface } from '#api/domain/interface.ts';
import { isRecord } from '#kube/meta.ts';
import { parseQuantity, findQuantityError } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const CASE_INSENSITIVE: ReadonlySet<Schema | undefined> = new Set([
  firmware.properties.uuid,
  networkInterface.properties.macAddress,
]);

/** Returns the value in a form that is equal (deepEqual) for all values of the schema with the same meaning. */
export function normalizeValue(schema: Schema | undefined, value: unknown): unknown {
  if (value === null) return undefined;
  if (schema !== undefined && isQuantity(schema))
    return findQuantityError(value) === undefined ? nanosOf(value) : value;
  if (typeof value === 'string') return CASE_INSENSITIVE.has(schema) ? value.toLowerCase() : value;
  if (Array.isArray(value)) return value.map((item) => normalizeValue(schema?.items, item));
  if (!isRecord(value)) return value;
  const { properties, additionalProperties: others } = schema ?? {};
  const rest = typeof others === 'object' ? others : undefined;
  const childOf = (key: string) =>
    properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : rest;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, normalizeValue(childOf(key), child)]));
}

function nanosOf(size: unknown): string {
  return String(parseQuantity(String(size)).nanos);
}
