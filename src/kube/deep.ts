/** Compares and copies JSON values: plain trees without cycles, dates or class instances. */

/**
 * Reports whether two values are equal as JSON, regardless of the order of keys. Ignores properties that are
 * `undefined` or named `__proto__`, which deepClone removes.
 */
export function deepEqual(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) {
    if (!Array.isArray(b) || a.length !== b.length) return false;
    for (let i = 0; i < a.length; i++) if (!deepEqual(a[i], b[i])) return false;
    return true;
  }
  if (Array.isArray(b)) return false;
  const left = a as Record<string, unknown>;
  const right = b as Record<string, unknown>;
  let unmatched = 0;
  for (const key of Object.keys(left)) {
    const value = left[key];
    if (value === undefined || key === '__proto__') continue;
    if (!deepEqual(value, right[key])) return false;
    unmatched++;
  }
  for (const key of Object.keys(right)) if (right[key] !== undefined && key !== '__proto__') unmatched--;
  return unmatched === 0;
}

/**
 * Returns a copy that shares nothing with its source. Omits a key `__proto__`, so that it can never become a prototype.
 */
export function deepClone<T>(value: T): T {
  return clone(value) as T;
}

function clone(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const copy: unknown[] = [];
    for (let i = 0; i < value.length; i++) copy.push(clone(value[i]));
    return copy;
  }
  const source = value as Record<string, unknown>;
  const copy: Record<string, unknown> = {};
  for (const key of Object.keys(source)) if (key !== '__proto__') copy[key] = clone(source[key]);
  return copy;
}
