/**
 * `+ - * / %` and negation. Overflow of 64 bits is a fault. An operator returns undefined for operands of other types.
 */
import { LIST_COST, bytesCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { ArrayList, itemsOf, AssociativeList } from '#cel/evaluate/array-list.ts';
import { DIVISION_BY_ZERO, DURATION_OVERFLOW, INT_OVERFLOW, MODULUS_BY_ZERO } from '#cel/evaluate/fault.ts';
import { TIMESTAMP_OVERFLOW, UINT_OVERFLOW } from '#cel/evaluate/fault.ts';
import { ElementIndex } from '#cel/evaluate/element-index.ts';
import { CelDuration, CelList, CelTimestamp, CelUint } from '#cel/value.ts';
import type { CelFault, CelValue, ElementIdentity } from '#cel/value.ts';

type Result = CelValue | CelFault | undefined;
export type BinaryOperator = (a: CelValue, b: CelValue, budget: Budget) => Result;

const MIN_INT = -(2n ** 63n);
/** 0001-01-01T00:00:00Z and 9999-12-31T23:59:59.999999999Z. */
const MIN_TIMESTAMP = -62_135_596_800_000_000_000n;
const MAX_TIMESTAMP = 253_402_300_799_999_999_999n;

export function checkedInt(value: bigint): bigint | CelFault {
  return BigInt.asIntN(64, value) === value ? value : INT_OVERFLOW;
}

export function checkedUint(value: bigint): CelUint | CelFault {
  return BigInt.asUintN(64, value) === value ? new CelUint(value) : UINT_OVERFLOW;
}

export function checkedDuration(nanos: bigint): CelDuration | CelFault {
  return BigInt.asIntN(64, nanos) === nanos ? new CelDuration(nanos) : DURATION_OVERFLOW;
}

export function checkedTimestamp(nanos: bigint): CelTimestamp | CelFault {
  return nanos >= MIN_TIMESTAMP && nanos <= MAX_TIMESTAMP ? new CelTimestamp(nanos) : TIMESTAMP_OVERFLOW;
}

export const add: BinaryOperator = (a, b, budget) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? checkedInt(a + b) : undefined;
  if (typeof a === 'string') return typeof b === 'string' ? joinStrings(a, b, budget) : undefined;
  if (typeof a === 'number') return typeof b === 'number' ? a + b : undefined;
  if (a instanceof CelList) return b instanceof CelList ? joinLists(a, b, budget) : undefined;
  if (a instanceof CelUint) return b instanceof CelUint ? checkedUint(a.value + b.value) : undefined;
  if (a instanceof Uint8Array) return b instanceof Uint8Array ? joinBytes(a, b, budget) : undefined;
  if (a instanceof CelTimestamp) return b instanceof CelDuration ? checkedTimestamp(a.nanos + b.nanos) : undefined;
  if (!(a instanceof CelDuration)) return undefined;
  if (b instanceof CelDuration) return checkedDuration(a.nanos + b.nanos);
  return b instanceof CelTimestamp ? checkedTimestamp(a.nanos + b.nanos) : undefined;
};

function joinStrings(a: string, b: string, budget: Budget): string {
  budget.charge(bytesCost(a.length + b.length));
  return a + b;
}

function joinBytes(a: Uint8Array, b: Uint8Array, budget: Budget): Uint8Array {
  budget.charge(LIST_COST + bytesCost(a.length + b.length));
  const joined = new Uint8Array(a.length + b.length);
  joined.set(a);
  joined.set(b, a.length);
  return joined;
}

function joinLists(a: CelList, b: CelList, budget: Budget): CelList {
  if (b.size === 0) return a;
  const { identity } = a;
  if (identity !== undefined) return joinAssociative(a, b, identity, budget);
  if (a instanceof ArrayList && a.canGrowInPlace) {
    budget.charge(b.size);
    return a.concat(b);
  }
  budget.charge(LIST_COST + 2 * (a.size + b.size));
  return (a instanceof ArrayList ? a : new ArrayList(itemsOf(a))).concat(b);
}

/**
 * Elements in both lists keep the position from the first and take the value from the second; the other elements of the
 * second list follow.
 */
function joinAssociative(a: CelList, b: CelList, identity: ElementIdentity, budget: Budget): CelList {
  budget.charge(LIST_COST + 2 * (a.size + b.size));
  const first = new ElementIndex(a, identity, budget);
  const second = new ElementIndex(b, identity, budget);
  const kept = itemsOf(a).map((element) => second.find(element, budget) ?? element);
  const added = itemsOf(b).filter((element) => first.find(element, budget) === undefined);
  return new AssociativeList([...kept, ...added], identity);
}

/** Computes `list + [value]` without creating the second list. Returns undefined if `list` is not a list. */
export function append(list: CelValue, value: CelValue, budget: Budget): CelList | undefined {
  if (!(list instanceof CelList)) return undefined;
  if (!(list instanceof ArrayList)) return joinLists(list, new ArrayList([value]), budget);
  budget.charge(list.canGrowInPlace ? 1 : 1 + list.size);
  return list.append(value);
}

export const subtract: BinaryOperator = (a, b) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? checkedInt(a - b) : undefined;
  if (typeof a === 'number') return typeof b === 'number' ? a - b : undefined;
  if (a instanceof CelUint) return b instanceof CelUint ? checkedUint(a.value - b.value) : undefined;
  if (a instanceof CelDuration) return b instanceof CelDuration ? checkedDuration(a.nanos - b.nanos) : undefined;
  if (!(a instanceof CelTimestamp)) return undefined;
  if (b instanceof CelDuration) return checkedTimestamp(a.nanos - b.nanos);
  return b instanceof CelTimestamp ? checkedDuration(a.nanos - b.nanos) : undefined;
};

export const multiply: BinaryOperator = (a, b) => {
  if (typeof a === 'bigint') return typeof b === 'bigint' ? checkedInt(a * b) : undefined;
  if (typeof a === 'number') return typeof b === 'number' ? a * b : undefined;
  return a instanceof CelUint && b instanceof CelUint ? checkedUint(a.value * b.value) : undefined;
};

export const divide: BinaryOperator = (a, b) => {
  if (typeof a === 'bigint') {
    if (typeof b !== 'bigint') return undefined;
    return b === 0n ? DIVISION_BY_ZERO : checkedInt(a / b);
  }
  if (typeof a === 'number') return typeof b === 'number' ? a / b : undefined;
  if (!(a instanceof CelUint) || !(b instanceof CelUint)) return undefined;
  return b.value === 0n ? DIVISION_BY_ZERO : checkedUint(a.value / b.value);
};

export const modulo: BinaryOperator = (a, b) => {
  if (typeof a === 'bigint') {
    if (typeof b !== 'bigint') return undefined;
    if (b === 0n) return MODULUS_BY_ZERO;
    // cel-go rejects the remainder too, because the quotient overflows.
    return a === MIN_INT && b === -1n ? INT_OVERFLOW : a % b;
  }
  if (!(a instanceof CelUint) || !(b instanceof CelUint)) return undefined;
  return b.value === 0n ? MODULUS_BY_ZERO : checkedUint(a.value % b.value);
};

export function negate(a: CelValue): Result {
  if (typeof a === 'bigint') return checkedInt(-a);
  return typeof a === 'number' ? -a : undefined;
}
