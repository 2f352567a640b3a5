/**
 * Bounds a JSON text before it is parsed, in one pass without allocations that ends at the first excess: a parser would
 * build millions of values before anybody could count them.
 */
import { MAX_OBJECT_DEPTH, MAX_OBJECT_VALUES } from '#engine/request/limits.ts';
import { findJsonExcess } from '#lib/text/json-nesting.ts';

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

/** Throws NestingError. The text need not be valid JSON. */
export function assertNesting(text: string): void {
  scan(text, Infinity);
}

/** Throws NestingError or ValueCountError. The text need not be valid JSON. */
export function assertBounds(text: string): void {
  scan(text, MAX_OBJECT_VALUES);
}

function scan(text: string, maxValues: number): void {
  if (text.length <= UNCHECKED_LENGTH) return;
  const excess = findJsonExcess(text, { maxDepth: MAX_OBJECT_DEPTH, maxValues });
  if (excess === 'depth') throw new NestingError();
  if (excess === 'values') throw new ValueCountError();
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
