/** The order of two values, as in cel-go: numbers are compared across their types, strings by code point. */
import { bytesCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { NAN_ORDER, NO_SUCH_OVERLOAD } from '#cel/evaluate/fault.ts';
import { CelDuration, CelTimestamp, CelUint } from '#cel/value.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

/** Returns a number below, equal to or above 0. */
export function compareValues(a: CelValue, b: CelValue, budget: Budget): number | CelFault {
  if (typeof a === 'bigint' && typeof b === 'bigint') return a < b ? -1 : a > b ? 1 : 0;
  if (typeof a === 'string') return typeof b === 'string' ? compareStrings(a, b, budget) : NO_SUCH_OVERLOAD;
  if (typeof a === 'boolean') return typeof b === 'boolean' ? Number(a) - Number(b) : NO_SUCH_OVERLOAD;
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) return compareNumbers(a.nanos, b.nanos);
  if (a instanceof CelDuration && b instanceof CelDuration) return compareNumbers(a.nanos, b.nanos);
  if (a instanceof Uint8Array && b instanceof Uint8Array) {
    budget.charge(bytesCost(Math.min(a.length, b.length)));
    return Buffer.compare(a, b);
  }
  const left = numberOf(a);
  const right = numberOf(b);
  return left === undefined || right === undefined ? NO_SUCH_OVERLOAD : compareNumbers(left, right);
}

function numberOf(value: CelValue): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof CelUint ? value.value : undefined;
}

/** As in cel-go, an int is converted to double to compare it with a double, which can round it. */
function compareNumbers(a: bigint | number, b: bigint | number): number | CelFault {
  if (Number.isNaN(a) || Number.isNaN(b)) return NAN_ORDER;
  const left = typeof b === 'number' ? Number(a) : a;
  const right = typeof a === 'number' ? Number(b) : b;
  return left < right ? -1 : left > right ? 1 : 0;
}

export function compareStrings(a: string, b: string, budget: Budget): number {
  const length = Math.min(a.length, b.length);
  budget.charge(bytesCost(length));
  for (let index = 0; index < length; index += 1) {
    const left = a.charCodeAt(index);
    const right = b.charCodeAt(index);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates encode code points above U+FFFF, although their own values are below U+E000. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}
