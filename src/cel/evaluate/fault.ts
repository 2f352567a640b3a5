/** The faults of cel-go, with its messages. */
import { CelFault, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export const NO_SUCH_OVERLOAD = new CelFault('no such overload');
export const INT_OVERFLOW = new CelFault('integer overflow');
export const UINT_OVERFLOW = new CelFault('unsigned integer overflow');
export const DURATION_OVERFLOW = new CelFault('duration overflow');
export const TIMESTAMP_OVERFLOW = new CelFault('timestamp overflow');
export const DIVISION_BY_ZERO = new CelFault('division by zero');
export const MODULUS_BY_ZERO = new CelFault('modulus by zero');
export const NAN_ORDER = new CelFault('NaN values cannot be ordered');
export const REPEATED_KEY = new CelFault('Failed with repeated key');
export const NONE_DEREFERENCE = new CelFault('optional.none() dereference');

export function noSuchKey(key: CelValue): CelFault {
  return new CelFault(`no such key: ${describeKey(key)}`);
}

export function conversionFault(from: string, to: string): CelFault {
  return new CelFault(`type conversion error from '${from}' to '${to}'`);
}

/** Formats a key or index for a message, with a bounded length. */
export function describeKey(value: CelValue): string {
  if (typeof value === 'string') return value.length > 200 ? `${value.slice(0, 200)}...` : value;
  if (value instanceof CelUint) return String(value.value);
  if (value === null || typeof value !== 'object') return String(value);
  return 'value';
}
