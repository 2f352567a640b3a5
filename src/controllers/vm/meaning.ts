/** Parts of a spec by what they mean: 1Gi is 1024Mi, a uuid or a MAC address is the same in any case. Pure. */
import { firmware } from '#api/domain/firmware.ts';
import { networkInterface } from '#api/domain/interface.ts';
import { isRecord } from '#kube/meta.ts';
import { parseQuantity, quantityFault } from '#kube/quantity.ts';
import { isQuantity } from '#kube/schema-dsl.ts';
import type { Schema } from '#kube/schema.ts';

const ANY_CASE: ReadonlySet<Schema | undefined> = new Set([
  firmware.properties.uuid,
  networkInterface.properties.macAddress,
]);

/** Equal (deepEqual) for values of that schema that mean the same. */
export function meant(schema: Schema | undefined, value: unknown): unknown {
  if (value === null) return undefined;
  if (schema !== undefined && isQuantity(schema)) return quantityFault(value) === undefined ? nanosOf(value) : value;
  if (typeof value === 'string') return ANY_CASE.has(schema) ? value.toLowerCase() : value;
  if (Array.isArray(value)) return value.map((item) => meant(schema?.items, item));
  if (!isRecord(value)) return value;
  const { properties, additionalProperties: others } = schema ?? {};
  const rest = typeof others === 'object' ? others : undefined;
  const childOf = (key: string) =>
    properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : rest;
  return Object.fromEntries(Object.entries(value).map(([key, child]) => [key, meant(childOf(key), child)]));
}

function nanosOf(size: unknown): string {
  return String(parseQuantity(String(size)).nanos);
}
