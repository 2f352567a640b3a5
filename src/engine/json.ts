/** JSON from outside: nesting is bounded, and `__proto__` is inert: such keys are dropped, however they are escaped. */
import { MAX_DEPTH } from '#engine/limits.ts';

export class NestingError extends Error {
  override name = 'NestingError';
  constructor() {
    super(`nested too deeply: the limit is ${MAX_DEPTH} levels`);
  }
}

/** Without either, no key can be `__proto__`. */
const SUSPECT = /__proto__|\\u/;

/** Throws SyntaxError or NestingError. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  inspect(value, 0, SUSPECT.test(text));
  return value;
}

function inspect(value: unknown, depth: number, suspect: boolean): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth >= MAX_DEPTH) throw new NestingError();
  if (Array.isArray(value)) {
    for (const item of value) inspect(item, depth + 1, suspect);
    return;
  }
  const fields = value as Record<string, unknown>;
  // JSON.parse makes it a property of the object's own, so that this takes nothing else away.
  if (suspect && Object.hasOwn(fields, '__proto__')) delete fields['__proto__'];
  for (const key in fields) inspect(fields[key], depth + 1, suspect);
}
