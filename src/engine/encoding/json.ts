/** Parses untrusted JSON: bounds the nesting, and drops `__proto__` keys, however they are escaped. */
import { mayHaveDuplicates } from '#engine/encoding/json-duplicates.ts';
import { assertBounds, assertNesting, NestingError } from '#engine/encoding/json-bounds.ts';
import { MAX_OBJECT_DEPTH } from '#engine/request/limits.ts';

/** Without either, no key can be `__proto__`. */
const SUSPECT = /__proto__|\\u/;

/** Callback for texts that may contain duplicate fields, of which the last one counts. */
interface DuplicatesWatch {
  readonly bytes: Buffer;
  mayHaveDuplicates(): void;
}

/** Throws SyntaxError or NestingError. */
export function parseJson(text: string): unknown {
  assertNesting(text);
  return parse(text);
}

/** Parses the JSON of a request. Throws SyntaxError, NestingError or ValueCountError. */
export function parseRequestJson(text: string, watch?: DuplicatesWatch): unknown {
  assertBounds(text);
  return parse(text, watch);
}

function parse(text: string, watch?: DuplicatesWatch): unknown {
  const value: unknown = JSON.parse(text);
  const fields = inspect(value, 0, SUSPECT.test(text));
  if (watch !== undefined && mayHaveDuplicates(watch.bytes, fields)) watch.mayHaveDuplicates();
  return value;
}

/** Checks a value and returns the number of its fields. */
function inspect(value: unknown, depth: number, suspect: boolean): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth >= MAX_OBJECT_DEPTH) throw new NestingError();
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += inspect(item, depth + 1, suspect);
    return count;
  }
  const fields = value as Record<string, unknown>;
  // JSON.parse creates it as an own property, so deleting it affects nothing else.
  if (suspect && Object.hasOwn(fields, '__proto__')) delete fields['__proto__'];
  for (const key in fields) count += 1 + inspect(fields[key], depth + 1, suspect);
  return count;
}
