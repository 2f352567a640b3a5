/**
 * Bounds a JSON text before it is parsed, in one pass without allocations that ends at the first excess: a parser would
 * build millions of values before anybody could count them.
 */
import { MAX_OBJECT_DEPTH, MAX_OBJECT_VALUES } from '#engine/request/limits.ts';

export class NestingError extends Error {
  override name = 'NestingError';
  constructor() {
    super(`nested too deeply: the limit is ${MAX_OBJECT_DEPTH} levels`);
  }
}

/** The value has too many fields and list items. */
export class ValueCountError extends Error {
  override name = 'ValueCountError';
  constructor() {
    super(`more than ${MAX_OBJECT_VALUES} fields and list items; split the object`);
  }
}

/** Shorter texts cannot have too many values, and parsing checks their nesting. */
const UNCHECKED_LENGTH = 4096;

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Throws NestingError. The text need not be valid JSON. */
export function assertNesting(text: string): void {
  scan(text, Infinity);
}

/** Throws NestingError or ValueCountError. The text need not be valid JSON. */
export function assertBounds(text: string): void {
  scan(text, MAX_OBJECT_VALUES);
}

function scan(text: string, maxValues: number): void {
  const { length } = text;
  if (length <= UNCHECKED_LENGTH) return;
  let depth = 0;
  let values = 0;
  for (let at = 0; at < length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        for (at++; at < length; at++) {
          const code = text.charCodeAt(at);
          if (code === QUOTE) break;
          if (code === BACKSLASH) at++;
        }
        break;
      case OPEN_LIST:
      case OPEN:
        if (++depth > MAX_OBJECT_DEPTH) throw new NestingError();
        if (++values > maxValues) throw new ValueCountError();
        break;
      case COMMA:
        if (++values > maxValues) throw new ValueCountError();
        break;
      case CLOSE_LIST:
      case CLOSE:
        depth--;
        break;
      default:
    }
  }
}

/** Counts the fields and items of a value like assertBounds: an empty map or list counts as one. Ends at the limit. */
export function countValues(value: unknown, limit = MAX_OBJECT_VALUES + 1): number {
  if (typeof value !== 'object' || value === null) return 0;
  const below: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  let count = Math.max(1, below.length);
  for (const item of below) {
    if (count >= limit) return limit;
    if (typeof item === 'object') count += countValues(item, limit - count);
  }
  return Math.min(count, limit);
}
