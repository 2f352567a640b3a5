/** JSON from outside: nesting is bounded, and `__proto__` is inert: such keys are dropped, however they are escaped. */
import { mayRepeat } from '#engine/json-repeats.ts';
import { MAX_DEPTH } from '#engine/limits.ts';

export class NestingError extends Error {
  override name = 'NestingError';
  constructor() {
    super(`nested too deeply: the limit is ${MAX_DEPTH} levels`);
  }
}

/** Without either, no key can be `__proto__`. */
const SUSPECT = /__proto__|\\u/;

/** Who wants to know that some field may be in the text twice, of which the last one counts. */
export interface RepeatsWatch {
  readonly bytes: Buffer;
  mayRepeat(): void;
}

/** Throws SyntaxError or NestingError. */
export function parseJson(text: string, watch?: RepeatsWatch): unknown {
  const value: unknown = JSON.parse(text);
  const fields = inspect(value, 0, SUSPECT.test(text));
  if (watch !== undefined && mayRepeat(watch.bytes, fields)) watch.mayRepeat();
  return value;
}

/** How many fields there are. */
function inspect(value: unknown, depth: number, suspect: boolean): number {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth >= MAX_DEPTH) throw new NestingError();
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value) count += inspect(item, depth + 1, suspect);
    return count;
  }
  const fields = value as Record<string, unknown>;
  // JSON.parse makes it a property of the object's own, so that this takes nothing else away.
  if (suspect && Object.hasOwn(fields, '__proto__')) delete fields['__proto__'];
  for (const key in fields) count += 1 + inspect(fields[key], depth + 1, suspect);
  return count;
}
