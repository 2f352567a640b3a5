/**
 * The function `cel.@mapInsert`, which only macros call: adds one entry, or all entries of another map, to a map. A
 * fold that builds a map costs only its entries: the maps of its steps share one table, and each sees its first
 * entries.
 */
import { keysCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { describeKey } from '#cel/evaluate/fault.ts';
import { canonicalKey } from '#cel/evaluate/map-key.ts';
import type { CanonicalKey } from '#cel/evaluate/map-key.ts';
import { func } from '#cel/extensions/overload.ts';
import type { Overload } from '#cel/library.ts';
import { mapOf, param } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault, CelMap } from '#cel/value.ts';

/** Units for one entry of a table. */
const ENTRY_COST = 15;

const KEY = param('K');
const VALUE = param('V');
const MAP = mapOf(KEY, VALUE);

export const insertOverloads: readonly Overload[] = [
  func<[CelMap, CelValue, CelValue]>('@mapInsert_map_key_value', [MAP, KEY, VALUE], MAP, insert),
  func<[CelMap, CelMap]>('@mapInsert_map_map', [MAP, MAP], MAP, insertAll),
];

interface Entry {
  readonly key: CelValue;
  readonly value: CelValue;
  /** Only maps with more entries than this see the entry. */
  readonly index: number;
}

class GrownMap extends CelMap {
  readonly #table: Map<CanonicalKey, Entry>;
  override readonly size: number;

  constructor(table: Map<CanonicalKey, Entry>) {
    super();
    this.#table = table;
    this.size = table.size;
  }

  /** Reports whether the map can grow its table in place, because no other map has. */
  get isNewest(): boolean {
    return this.#table.size === this.size;
  }

  /** Must be called only on the newest map of a table, with a new key. */
  insert(id: CanonicalKey, key: CelValue, value: CelValue): GrownMap {
    this.#table.set(id, { key, value, index: this.size });
    return new GrownMap(this.#table);
  }

  override get(key: CelValue): CelValue | undefined {
    return this.#entry(key)?.value;
  }

  override has(key: CelValue): boolean {
    return this.#entry(key) !== undefined;
  }

  override *keys(): Iterable<CelValue> {
    for (const { key, index } of this.#table.values()) {
      if (index >= this.size) return;
      yield key;
    }
  }

  #entry(key: CelValue): Entry | undefined {
    const id = canonicalKey(key);
    const entry = id === undefined ? undefined : this.#table.get(id);
    return entry !== undefined && entry.index < this.size ? entry : undefined;
  }
}

function insert(budget: Budget, map: CelMap, key: CelValue, value: CelValue): CelMap | CelFault {
  const id = canonicalKey(key);
  if (id === undefined) return new CelFault('unsupported key type');
  if (map.has(key)) return new CelFault(`insert failed: key ${describeKey(key)} already exists`);
  budget.charge(ENTRY_COST);
  const own = map instanceof GrownMap && map.isNewest ? map : copyOf(budget, map);
  return own instanceof CelFault ? own : own.insert(id, key, value);
}

function insertAll(budget: Budget, map: CelMap, more: CelMap): CelMap | CelFault {
  budget.charge(keysCost(more.size));
  let result: CelMap | CelFault = map;
  for (const key of more.keys()) {
    const value = more.get(key);
    if (value === undefined) continue;
    if (value instanceof CelFault) return value;
    result = insert(budget, result, key, value);
    if (result instanceof CelFault) return result;
  }
  return result;
}

function copyOf(budget: Budget, map: CelMap): GrownMap | CelFault {
  budget.charge(keysCost(map.size) + ENTRY_COST * map.size);
  const table = new Map<CanonicalKey, Entry>();
  for (const key of map.keys()) {
    const id = canonicalKey(key);
    const value = map.get(key);
    if (value instanceof CelFault) return value;
    if (id !== undefined && value !== undefined) table.set(id, { key, value, index: table.size });
  }
  return new GrownMap(table);
}
