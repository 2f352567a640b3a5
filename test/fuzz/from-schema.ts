/** Values from a schema: mostly valid, so that they pass the first check, with odd values among them. */
import type { Schema } from '#kube/schema.ts';
import { ODD_KEYS, oddScalar, oddValue, put } from '#test/fuzz/odd-values.ts';
import type { SeededRandom } from '#test/support/seeded-random.ts';

/** The probability of a value that the schema does not allow. */
const ODD = 0.03;
const MAX_DEPTH = 7;

const TEXTS_OF_FORMAT: Readonly<Record<string, readonly string[]>> = {
  'date-time': ['2026-01-01T00:00:00Z', '2026-06-30T12:00:00.123456Z', '0001-01-01T00:00:00Z'],
  byte: ['', 'YQ==', 'eyJhIjoxfQ=='],
  quantity: ['1', '1Gi', '250m', '1e3', '0.5', '-1'],
};

const PLAIN_TEXTS = ['a', 'b', 'web', 'data', 'a.example.com', 'example.com/x', '1', '/data', '10.0.0.1', 'nginx:1'];

export function valueOf(schema: Schema, random: SeededRandom, depth = 0): unknown {
  if (random.chance(ODD)) return oddValue(random);
  if (schema.enum !== undefined && random.chance(0.9)) return random.pick(schema.enum);
  if (schema['x-kubernetes-int-or-string'] === true) return random.pick<unknown>([1, 80, 'http', '50%', '1Gi']);
  switch (schema.type) {
    case 'object':
      return objectOf(schema, random, depth);
    case 'array':
      return depth > MAX_DEPTH || schema.items === undefined
        ? []
        : Array.from({ length: random.between(0, 2) }, () => valueOf(schema.items!, random, depth + 1));
    case 'integer':
    case 'number':
      return numberOf(schema, random);
    case 'boolean':
      return random.chance(0.5);
    case 'string':
      return random.pick(TEXTS_OF_FORMAT[schema.format ?? ''] ?? PLAIN_TEXTS);
    default:
      return oddScalar(random);
  }
}

function numberOf({ minimum = 0, maximum = minimum + 100 }: Schema, random: SeededRandom): number {
  return random.between(Math.ceil(minimum), Math.floor(maximum));
}

function objectOf(schema: Schema, random: SeededRandom, depth: number): Record<string, unknown> {
  const made: Record<string, unknown> = {};
  const { properties = {}, required = [], additionalProperties } = schema;
  // Fewer fields at greater depth: a pod template has hundreds of them.
  const wanted = depth > MAX_DEPTH ? 0 : 0.6 / (1 + depth);
  for (const [name, property] of Object.entries(properties)) {
    if (!required.includes(name) && !random.chance(wanted)) continue;
    if (required.includes(name) && random.chance(ODD)) continue;
    put(made, name, valueOf(property, random, depth + 1));
  }
  const free = typeof additionalProperties === 'object' ? additionalProperties : undefined;
  const open = free !== undefined || schema['x-kubernetes-preserve-unknown-fields'] === true;
  for (let field = open ? random.between(0, 2) : 0; field > 0; field--) {
    const value = free === undefined ? oddValue(random, 2) : valueOf(free, random, depth + 1);
    put(made, random.pick(random.chance(0.3) ? ODD_KEYS : PLAIN_TEXTS), value);
  }
  if (random.chance(ODD)) put(made, random.pick(ODD_KEYS), oddValue(random));
  return made;
}

/** Returns the value with a few changes: parts replaced, removed, added or duplicated. */
export function mutated(value: unknown, random: SeededRandom, replacement: () => unknown): unknown {
  if (random.chance(0.08)) return replacement();
  if (Array.isArray(value)) {
    const items: unknown[] = value.map((item) => (random.chance(0.5) ? mutated(item, random, replacement) : item));
    if (random.chance(0.15)) items.push(items.length > 0 && random.chance(0.5) ? items[0] : replacement());
    if (random.chance(0.1)) items.splice(random.between(0, items.length), 1);
    return items;
  }
  if (typeof value !== 'object' || value === null) return value;
  const made: Record<string, unknown> = {};
  for (const [key, field] of Object.entries(value)) {
    if (random.chance(0.06)) continue;
    const kept = key === 'apiVersion' || key === 'kind' ? random.chance(0.97) : random.chance(0.5);
    put(made, key, kept ? field : mutated(field, random, replacement));
  }
  if (random.chance(0.1)) put(made, random.pick(ODD_KEYS), replacement());
  return made;
}
