/** Keys of maps. */
import { CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export type Canonical = string | boolean | bigint;

/** Keys that are equal have the same canonical form: 1, 1u and 1.0 find one entry. undefined = never a key. */
export function canonical(key: CelValue): Canonical | undefined {
  if (typeof key === 'string' || typeof key === 'boolean' || typeof key === 'bigint') return key;
  if (key instanceof CelUint) return key.value;
  return typeof key === 'number' && Number.isInteger(key) ? BigInt(key) : undefined;
}
