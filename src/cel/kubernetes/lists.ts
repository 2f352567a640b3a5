/**
 * Kubernetes' functions for lists. Their overloads differ in the element type, but a list of dyn matches all of them,
 * so the implementations test the elements.
 */
import type { Budget } from '#cel/limits/budget.ts';
import { add } from '#cel/evaluate/arithmetic.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { NO_SUCH_OVERLOAD } from '#cel/evaluate/fault.ts';
import { compareValues } from '#cel/evaluate/compare-values.ts';
import { method } from '#cel/extensions/overload.ts';
import type { Library, Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';
import { BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, listOf, param } from '#cel/type.ts';
import type { CelList, CelValue } from '#cel/value.ts';
import { CelDuration, CelFault, CelUint } from '#cel/value.ts';

const ELEMENT = param('A');

const comparable: readonly [string, CelType][] = [
  ['int', INT],
  ['uint', UINT],
  ['double', DOUBLE],
  ['bool', BOOL],
  ['duration', DURATION],
  ['timestamp', TIMESTAMP],
  ['string', STRING],
  ['bytes', BYTES],
];

const summable: readonly [string, CelType, CelValue][] = [
  ['int', INT, 0n],
  ['uint', UINT, new CelUint(0n)],
  ['double', DOUBLE, 0],
  ['duration', DURATION, new CelDuration(0n)],
];

export const listsLibrary: Library = {
  functions: {
    indexOf: [
      method<[CelList, CelValue]>('list_a_index_of_int', [listOf(ELEMENT), ELEMENT], INT, (budget, list, item) => {
        let index = 0;
        while (index < list.size && !isAt(budget, list, index, item)) index++;
        return index < list.size ? BigInt(index) : -1n;
      }),
    ],
    isSorted: comparable.map(([name, type]) =>
      method<[CelList]>(`list_${name}_is_sorted_bool`, [listOf(type)], BOOL, isSorted),
    ),
    lastIndexOf: [
      method<[CelList, CelValue]>('list_a_last_index_of_int', [listOf(ELEMENT), ELEMENT], INT, (budget, list, item) => {
        let index = list.size - 1;
        while (index >= 0 && !isAt(budget, list, index, item)) index--;
        return BigInt(index);
      }),
    ],
    max: comparable.map(([name, type]) => extremeOverload('max', 1, name, type)),
    min: comparable.map(([name, type]) => extremeOverload('min', -1, name, type)),
    sum: summable.map(([name, type, zero]) =>
      method<[CelList]>(`list_${name}_sum_${name}`, [listOf(type)], type, (budget, list) => sum(budget, list, zero)),
    ),
  },
};

function isAt(budget: Budget, list: CelList, index: number, item: CelValue): boolean {
  budget.charge(2);
  return areEqual(list.at(index), item, budget);
}

function isSorted(budget: Budget, list: CelList): boolean | CelFault {
  for (let i = 1; i < list.size; i++) {
    budget.charge(2);
    const result = compareValues(list.at(i - 1), list.at(i), budget);
    if (result instanceof CelFault) return result;
    if (result > 0) return false;
  }
  return true;
}

/** Declares min or max: the first of the elements that are extreme in the direction of `sign`. */
function extremeOverload(name: 'min' | 'max', sign: 1 | -1, typeName: string, type: CelType): Overload {
  const work = (budget: Budget, list: CelList): CelValue | CelFault => {
    if (list.size === 0) return new CelFault(`${name} called on empty list`);
    let best = list.at(0);
    for (let i = 1; i < list.size; i++) {
      budget.charge(2);
      const result = compareValues(list.at(i), best, budget);
      if (result instanceof CelFault) return result;
      if (result * sign > 0) best = list.at(i);
    }
    return best;
  };
  return method<[CelList]>(`list_${typeName}_${name}_${typeName}`, [listOf(type)], type, work);
}

/** Adds only numbers and durations, although strings and lists have an addition too. */
function sum(budget: Budget, list: CelList, zero: CelValue): CelValue | CelFault {
  if (list.size === 0) return zero;
  let total = list.at(0);
  if (!summable.some(([, , known]) => haveSameType(known, total))) return NO_SUCH_OVERLOAD;
  for (let i = 1; i < list.size; i++) {
    budget.charge(1);
    const next = list.at(i);
    const result = haveSameType(total, next) ? add(total, next, budget) : undefined;
    if (result === undefined || result instanceof CelFault) return result ?? NO_SUCH_OVERLOAD;
    total = result;
  }
  return total;
}

function haveSameType(a: CelValue, b: CelValue): boolean {
  if (typeof a !== 'object' || a === null) return typeof a === typeof b;
  return (a instanceof CelUint && b instanceof CelUint) || (a instanceof CelDuration && b instanceof CelDuration);
}
