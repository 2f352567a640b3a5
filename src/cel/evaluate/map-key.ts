/** Canonical keys of maps. */
import { CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export type CanonicalKey = string | boolean | bigint;

/**
 * Returns the same canonical key for equal keys: 1, 1u and 1.0 find the same entry. Returns undefined for values that
 * cannot be keys.
 */
export function canonicalKey(key: CelValue): CanonicalKey | undefined {
  if (typeof key === 'string' || typeof key === 'boolean' || typeof key === 'bigint') return key;
  if (key instanceof CelUint) return key.value;
  return typeof key === 'number' && Number.isInteger(key) ? BigInt(key) : undefined;
}
