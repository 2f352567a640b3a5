/**
 * Equality: numbers are compared by value across their types, lists and maps by their elements; values of different
 * types are unequal. Charges for the elements and bytes that it reads.
 */
import { CostLimitError, bytesCost, keysCost } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { CelDuration, CelFault, CelList, CelMap, CelOpaque, CelOptional } from '#cel/value.ts';
import { CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import { ElementIndex } from '#cel/evaluate/element-index.ts';
import type { CelValue } from '#cel/value.ts';

/** Bounds the recursion. No value that an expression builds is deeper. */
const MAX_DEPTH = 500;
/** Covers the creation of the view if the list or map comes from JSON. */
const CONTAINER_UNITS = 6;
/** Covers two lookups. */
const ENTRY_UNITS = 8;

export function areEqual(a: CelValue, b: CelValue, budget: Budget, depth = 0): boolean {
  if (typeof a === 'string') return typeof b === 'string' && areStringsEqual(a, b, budget);
  if (typeof a === 'boolean' || a === null) return a === b;
  if (typeof a === 'bigint' || typeof a === 'number' || a instanceof CelUint) return areNumbersEqual(a, b);
  if (a instanceof CelList) return b instanceof CelList && areListsEqual(a, b, budget, depth);
  if (a instanceof CelMap) return b instanceof CelMap && areMapsEqual(a, b, budget, depth);
  if (a instanceof Uint8Array) return b instanceof Uint8Array && areBytesEqual(a, b, budget);
  if (a instanceof CelTimestamp) return b instanceof CelTimestamp && a.nanos === b.nanos;
  if (a instanceof CelDuration) return b instanceof CelDuration && a.nanos === b.nanos;
  if (a instanceof CelTypeValue) return b instanceof CelTypeValue && a.name === b.name;
  if (a instanceof CelOptional) return b instanceof CelOptional && areOptionalsEqual(a, b, budget, depth);
  return b instanceof CelOpaque && a.type.name === b.type.name && a.equals(b, budget);
}

function areStringsEqual(a: string, b: string, budget: Budget): boolean {
  if (a.length !== b.length) return false;
  if (a.length > 10) budget.charge(bytesCost(a.length));
  return a === b;
}

function areNumbersEqual(a: bigint | number | CelUint, b: CelValue): boolean {
  const left = a instanceof CelUint ? a.value : a;
  const right = b instanceof CelUint ? b.value : b;
  if (typeof left === typeof right) return left === right;
  // As in cel-go, an int is converted to double to compare it with a double.
  return (typeof right === 'bigint' || typeof right === 'number') && Number(left) === Number(right);
}

function areBytesEqual(a: Uint8Array, b: Uint8Array, budget: Budget): boolean {
  if (a.length !== b.length) return false;
  budget.charge(bytesCost(a.length));
  return Buffer.compare(a, b) === 0;
}

function areOptionalsEqual(a: CelOptional, b: CelOptional, budget: Budget, depth: number): boolean {
  if (a.value === undefined || b.value === undefined) return a.value === b.value;
  return arePartsEqual(a.value, b.value, budget, depth);
}

function arePartsEqual(a: CelValue, b: CelValue, budget: Budget, depth: number): boolean {
  if (depth >= MAX_DEPTH) throw new CostLimitError();
  budget.charge(1);
  return areEqual(a, b, budget, depth + 1);
}

function areListsEqual(a: CelList, b: CelList, budget: Budget, depth: number): boolean {
  const { size, identity } = a;
  if (size !== b.size) return false;
  budget.charge(CONTAINER_UNITS);
  if (identity !== undefined) {
    const index = new ElementIndex(a, identity, budget);
    return everyElement(b, (element) => {
      const match = index.find(element, budget);
      return match !== undefined && arePartsEqual(match, element, budget, depth);
    });
  }
  for (let index = 0; index < size; index += 1) {
    if (!arePartsEqual(a.at(index), b.at(index), budget, depth)) return false;
  }
  return true;
}

function everyElement(list: CelList, holds: (element: CelValue) => boolean): boolean {
  for (let index = 0; index < list.size; index += 1) {
    if (!holds(list.at(index))) return false;
  }
  return true;
}

function areMapsEqual(a: CelMap, b: CelMap, budget: Budget, depth: number): boolean {
  budget.charge(CONTAINER_UNITS);
  const { size } = a;
  budget.charge(keysCost(size));
  if (size !== b.size) return false;
  for (const key of a.keys()) {
    budget.charge(ENTRY_UNITS);
    const left = a.get(key);
    const right = b.get(key);
    if (left === undefined || right === undefined) return false;
    if (left instanceof CelFault || right instanceof CelFault) return false;
    if (!arePartsEqual(left, right, budget, depth)) return false;
  }
  return true;
}
