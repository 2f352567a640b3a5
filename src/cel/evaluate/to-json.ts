/** Converts the result of an expression to JSON. */
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { formatDuration, formatTimestamp } from '#cel/evaluate/text/time-text.ts';
import { CelDuration, CelFault, CelList, CelMap, CelOptional } from '#cel/value.ts';
import { CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const MAX_DEPTH = 500;
/** Shared parts are written once per use, so a small value can be large as JSON. */
const DEFAULT_UNITS = 1_000_000;

/** Throws CostLimitError if the JSON exceeds the budget. As in cel-go, ints beyond 53 bits are strings. */
export function toJson(value: CelValue, budget: Budget = new Budget(DEFAULT_UNITS), depth = 0): unknown {
  budget.charge(1);
  if (depth > MAX_DEPTH) throw new CostLimitError();
  if (typeof value === 'bigint') return jsonInteger(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : String(value);
  if (value === null || typeof value !== 'object') return value;
  if (value instanceof CelList) {
    return Array.from({ length: value.size }, (_, at) => toJson(value.at(at), budget, depth + 1));
  }
  if (value instanceof CelMap) return jsonObject(value, budget, depth);
  if (value instanceof CelUint) return jsonInteger(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof CelTimestamp) return formatTimestamp(value);
  if (value instanceof CelDuration) return formatDuration(value);
  if (value instanceof CelTypeValue) return value.name;
  if (value instanceof CelOptional) return value.value === undefined ? null : toJson(value.value, budget, depth + 1);
  return value.type.name;
}

function jsonInteger(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : String(value);
}

function jsonObject(map: CelMap, budget: Budget, depth: number): unknown {
  const entries: [string, unknown][] = [];
  for (const key of map.keys()) {
    const value = map.get(key);
    if (value === undefined || value instanceof CelFault) continue;
    entries.push([String(toJson(key, budget, depth + 1)), toJson(value, budget, depth + 1)]);
  }
  // fromEntries defines properties, so the key `__proto__` is safe.
  return Object.fromEntries(entries);
}
