/** Random schemas, values that fit them, and sets, for the property tests of this folder. */
import type { Schema } from '#kube/schema.ts';
import { fieldSetOf } from '../field-set.ts';
import type { FieldSet } from '../field-set.ts';

/** The methods of SeededRandom that are used here. */
interface Random {
  next(): number;
  between(least: number, most: number): number;
  chance(probability: number): boolean;
  pick<T>(items: readonly T[]): T;
}

const NAMES = ['a', 'b', 'c', 'toString', 'x/y'];
const TEXTS = ['', 'a', 'b', 'a b', '<&>', 'é"\\', '\u{1f600}'];
const ELEMENTS = [
  'f:a',
  'f:b',
  'f:',
  'k:{"a":"x"}',
  'k:{"a":"x","b":10}',
  'k:{"a":"x","b":9}',
  'v:"a"',
  'v:2',
  'v:10',
  'i:1',
];

export function randomSet(random: Random): FieldSet {
  const path = () => Array.from({ length: random.between(1, 4) }, () => random.pick(ELEMENTS));
  return fieldSetOf(...Array.from({ length: random.between(0, 12) }, path));
}

export function randomObjectSchema(random: Random, depth = 3): Schema {
  const properties: Record<string, Schema> = {};
  for (const name of NAMES) if (random.chance(0.6)) properties[name] = randomSchema(random, depth - 1);
  return {
    type: 'object',
    properties,
    ...(random.chance(0.2) ? { 'x-kubernetes-preserve-unknown-fields': true } : {}),
  };
}

function randomSchema(random: Random, depth: number): Schema {
  if (depth <= 0 || random.chance(0.3)) return randomScalar(random);
  const inner = () => randomSchema(random, depth - 1);
  return random.pick<() => Schema>([
    () => randomObjectSchema(random, depth),
    () => ({ ...randomObjectSchema(random, depth), 'x-kubernetes-map-type': 'atomic' }),
    () => ({ type: 'object', additionalProperties: inner() }),
    () => ({ type: 'object' }),
    () => ({ 'x-kubernetes-preserve-unknown-fields': true }),
    () => ({ type: 'array', items: inner() }),
    () => ({ type: 'array', items: randomScalar(random), 'x-kubernetes-list-type': 'set' }),
    () => keyedList(random, depth),
  ])();
}

function randomScalar(random: Random): Schema {
  return random.pick<Schema>([{ type: 'string' }, { type: 'integer' }, { type: 'boolean' }]);
}

function keyedList(random: Random, depth: number): Schema {
  const item = randomObjectSchema(random, depth);
  const properties = {
    ...item.properties,
    id: { type: 'string' as const },
    n: { type: 'integer' as const, default: 1 },
  };
  return {
    type: 'array',
    items: { ...item, properties, 'x-kubernetes-map-type': random.chance(0.2) ? 'atomic' : 'granular' },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': random.chance(0.5) ? ['id'] : ['n', 'id'],
  };
}

/** Returns a value that fits the schema: without duplicates and missing keys. */
export function randomValue(random: Random, schema: Schema): unknown {
  if (random.chance(0.05)) return null;
  switch (schema.type) {
    case 'string':
      return random.pick(TEXTS);
    case 'integer':
      return random.between(-2, 12);
    case 'boolean':
      return random.chance(0.5);
    case 'array':
      return randomItems(random, schema);
    case 'object':
      return randomObject(random, schema);
    default:
      return anyJson(random, 2);
  }
}

export function randomObject(random: Random, schema: Schema): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const name of shuffle(random, Object.keys(schema.properties ?? {}))) {
    if (random.chance(0.6)) out[name] = randomValue(random, schema.properties![name]!);
  }
  const others = schema.additionalProperties;
  const isFree = schema.properties === undefined || schema['x-kubernetes-preserve-unknown-fields'] === true;
  for (const name of NAMES) {
    if (!isFree || Object.hasOwn(schema.properties ?? {}, name) || random.chance(0.6)) continue;
    out[name] = typeof others === 'object' ? randomValue(random, others) : anyJson(random, 2);
  }
  return out;
}

function randomItems(random: Random, schema: Schema): unknown[] {
  const items = Array.from({ length: random.between(0, 4) }, () => randomValue(random, schema.items!));
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return [...new Set(items.filter((item) => item !== null))];
    case 'map':
      return keyedItems(random, schema);
    default:
      return items;
  }
}

function keyedItems(random: Random, schema: Schema): unknown[] {
  const ids = shuffle(random, ['p', 'q', 'r']).slice(random.between(0, 3));
  return ids.map((id) => {
    const item = { ...randomObject(random, schema.items!), id } as Record<string, unknown>;
    if (item['n'] === null) delete item['n'];
    return item;
  });
}

function anyJson(random: Random, depth: number): unknown {
  if (depth === 0 || random.chance(0.4)) return random.pick<unknown>([null, true, 0, 1.5, ...TEXTS]);
  if (random.chance(0.3)) return Array.from({ length: random.between(0, 3) }, () => anyJson(random, depth - 1));
  return Object.fromEntries(NAMES.filter(() => random.chance(0.4)).map((name) => [name, anyJson(random, depth - 1)]));
}

export function shuffle<T>(random: Random, items: readonly T[]): T[] {
  return items
    .map((item) => ({ item, rank: random.next() }))
    .sort((a, b) => a.rank - b.rank)
    .map(({ item }) => item);
}
