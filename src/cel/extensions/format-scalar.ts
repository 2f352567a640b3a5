/** Formats the values that are the same in every style, as `string(value)` does. */
import { isUtf8 } from 'node:buffer';
import { keysCost } from '#cel/limits/budget.ts';
import { compareStrings } from '#cel/evaluate/compare-values.ts';
import { formatDuration, formatTimestamp } from '#cel/evaluate/text/time-text.ts';
import type { FormatText } from '#cel/extensions/format.ts';
import { FormatError, describeGiven } from '#cel/extensions/format.ts';
import { CelDuration, CelFault, CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelMap, CelValue } from '#cel/value.ts';

const utf8 = new TextDecoder();

/** Units for one entry of a map, including sorting. */
const ENTRY_COST = 12;
/** Units for a timestamp or duration. */
const TIME_COST = 60;

/** Returns undefined for values that are not scalars, and for doubles, which depend on the style. */
export function formatScalarText(value: CelValue, text: FormatText): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || typeof value === 'bigint' || value === null) return String(value);
  if (value instanceof CelUint) return String(value.value);
  if (value instanceof Uint8Array) return formatBytes(value, text);
  if (value instanceof CelTimestamp || value instanceof CelDuration) {
    text.budget.charge(TIME_COST);
    return value instanceof CelTimestamp ? formatTimestamp(value) : formatDuration(value);
  }
  if (value instanceof CelTypeValue) return value.name;
  return undefined;
}

function formatBytes(bytes: Uint8Array, text: FormatText): string {
  text.charge(bytes.length * 2);
  if (isUtf8(bytes)) return utf8.decode(bytes);
  throw new FormatError('could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string');
}

export function stringClauseError(value: CelValue): FormatError {
  const supported = 'strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps';
  return new FormatError(`string clause can only be used on ${supported}, ${describeGiven(value)}`);
}

interface TextEntry {
  /** The formatted key. */
  readonly key: string;
  readonly value: CelValue;
}

/** Returns the entries of a map in the order of their formatted keys. */
export function sortEntries(map: CelMap, text: FormatText, keyText: (key: CelValue) => string): TextEntry[] {
  text.budget.charge(keysCost(map.size));
  const entries: TextEntry[] = [];
  for (const key of map.keys()) {
    text.budget.charge(ENTRY_COST);
    const value = map.get(key);
    if (value === undefined) continue;
    if (value instanceof CelFault) throw new FormatError(value.message);
    entries.push({ key: keyText(key), value });
  }
  return entries.sort((a, b) => compareStrings(a.key, b.key, text.budget));
}

/** Maximum nesting of lists and maps. Bounds the recursion. */
export const MAX_FORMAT_DEPTH = 500;
