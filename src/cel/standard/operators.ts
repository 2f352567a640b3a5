/** The operators and their types. The planner calls their implementations directly (evaluate/plan/plan-call.ts). */
import { add, divide, modulo, multiply, negate, subtract } from '#cel/evaluate/arithmetic.ts';
import type { BinaryOperator } from '#cel/evaluate/arithmetic.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { NO_SUCH_OVERLOAD } from '#cel/evaluate/fault.ts';
import { contains, indexElement } from '#cel/evaluate/access.ts';
import { compareValues } from '#cel/evaluate/compare-values.ts';
import type { Overload } from '#cel/library.ts';
import { BOOL, BYTES, DOUBLE, DURATION, INT, STRING, TIMESTAMP, UINT, listOf, mapOf, param } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';

const A = param('A');
const B = param('B');

function overload(id: string, args: readonly CelType[], result: CelType, call: Overload['call']): Overload {
  return { id, member: false, args, result, call };
}

/** Two argument types and the result type, by overload name. */
type Signatures = Readonly<Record<string, readonly [CelType, CelType, CelType]>>;

function arithmetic(operator: BinaryOperator, signatures: Signatures): readonly Overload[] {
  return Object.entries(signatures).map(([id, [left, right, result]]) =>
    overload(
      id,
      [left, right],
      result,
      ([a, b], budget) => operator(a as CelValue, b as CelValue, budget) ?? NO_SUCH_OVERLOAD,
    ),
  );
}

const ORDERED: Readonly<Record<string, readonly [CelType, CelType]>> = {
  bool: [BOOL, BOOL],
  int64: [INT, INT],
  int64_double: [INT, DOUBLE],
  int64_uint64: [INT, UINT],
  uint64: [UINT, UINT],
  uint64_double: [UINT, DOUBLE],
  uint64_int64: [UINT, INT],
  double: [DOUBLE, DOUBLE],
  double_int64: [DOUBLE, INT],
  double_uint64: [DOUBLE, UINT],
  string: [STRING, STRING],
  bytes: [BYTES, BYTES],
  timestamp: [TIMESTAMP, TIMESTAMP],
  duration: [DURATION, DURATION],
};

function comparison(name: string, holds: (sign: number) => boolean): readonly Overload[] {
  return Object.entries(ORDERED).map(([types, args]) =>
    overload(`${name}_${types}`, args, BOOL, ([a, b], budget) => {
      const sign = compareValues(a as CelValue, b as CelValue, budget);
      return typeof sign === 'number' ? holds(sign) : sign;
    }),
  );
}

/** A placeholder: the planner evaluates the arguments of these operators on demand. */
const lazy: Overload['call'] = () => NO_SUCH_OVERLOAD;

export const operators: Readonly<Record<string, readonly Overload[]>> = {
  '_?_:_': [overload('conditional', [BOOL, A, A], A, lazy)],
  '_&&_': [overload('logical_and', [BOOL, BOOL], BOOL, lazy)],
  '_||_': [overload('logical_or', [BOOL, BOOL], BOOL, lazy)],
  '@not_strictly_false': [overload('not_strictly_false', [BOOL], BOOL, lazy)],
  '!_': [overload('logical_not', [BOOL], BOOL, ([value]) => value !== true)],
  '_==_': [overload('equals', [A, A], BOOL, ([a, b], budget) => areEqual(a as CelValue, b as CelValue, budget))],
  '_!=_': [overload('not_equals', [A, A], BOOL, ([a, b], budget) => !areEqual(a as CelValue, b as CelValue, budget))],
  '_<_': comparison('less', (sign) => sign < 0),
  '_<=_': comparison('less_equals', (sign) => sign <= 0),
  '_>_': comparison('greater', (sign) => sign > 0),
  '_>=_': comparison('greater_equals', (sign) => sign >= 0),
  '_+_': arithmetic(add, {
    add_bytes: [BYTES, BYTES, BYTES],
    add_double: [DOUBLE, DOUBLE, DOUBLE],
    add_duration_duration: [DURATION, DURATION, DURATION],
    add_duration_timestamp: [DURATION, TIMESTAMP, TIMESTAMP],
    add_timestamp_duration: [TIMESTAMP, DURATION, TIMESTAMP],
    add_int64: [INT, INT, INT],
    add_list: [listOf(A), listOf(A), listOf(A)],
    add_string: [STRING, STRING, STRING],
    add_uint64: [UINT, UINT, UINT],
  }),
  '_-_': arithmetic(subtract, {
    subtract_double: [DOUBLE, DOUBLE, DOUBLE],
    subtract_duration_duration: [DURATION, DURATION, DURATION],
    subtract_int64: [INT, INT, INT],
    subtract_timestamp_duration: [TIMESTAMP, DURATION, TIMESTAMP],
    subtract_timestamp_timestamp: [TIMESTAMP, TIMESTAMP, DURATION],
    subtract_uint64: [UINT, UINT, UINT],
  }),
  '_*_': arithmetic(multiply, {
    multiply_double: [DOUBLE, DOUBLE, DOUBLE],
    multiply_int64: [INT, INT, INT],
    multiply_uint64: [UINT, UINT, UINT],
  }),
  '_/_': arithmetic(divide, {
    divide_double: [DOUBLE, DOUBLE, DOUBLE],
    divide_int64: [INT, INT, INT],
    divide_uint64: [UINT, UINT, UINT],
  }),
  '_%_': arithmetic(modulo, {
    modulo_int64: [INT, INT, INT],
    modulo_uint64: [UINT, UINT, UINT],
  }),
  '-_': [
    overload('negate_double', [DOUBLE], DOUBLE, ([a]) => negate(a as CelValue) ?? NO_SUCH_OVERLOAD),
    overload('negate_int64', [INT], INT, ([a]) => negate(a as CelValue) ?? NO_SUCH_OVERLOAD),
  ],
  '_[_]': [
    overload('index_list', [listOf(A), INT], A, ([list, at], budget) =>
      indexElement(list as CelValue, at as CelValue, budget),
    ),
    overload('index_map', [mapOf(A, B), A], B, ([map, key], budget) =>
      indexElement(map as CelValue, key as CelValue, budget),
    ),
  ],
  '@in': [
    overload('in_list', [A, listOf(A)], BOOL, ([a, b], budget) => contains(a as CelValue, b as CelValue, budget)),
    overload('in_map', [A, mapOf(A, B)], BOOL, ([a, b], budget) => contains(a as CelValue, b as CelValue, budget)),
  ],
};
