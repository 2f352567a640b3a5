/**
 * The optional library: values that may be absent. `optional.of` and similar functions have a dot in their names (see
 * parse/qualified-name.ts). The planner evaluates the argument of `or` and `orValue` on demand.
 */
import { NO_VALUE, optionalIndex, optionalSelect } from '#cel/evaluate/access.ts';
import { NONE_DEREFERENCE } from '#cel/evaluate/fault.ts';
import type { Library, Overload } from '#cel/library.ts';
import { optionalMacros } from '#cel/parse/optional-macros.ts';
import { BOOL, DYN, INT, STRING, listOf, mapOf, optionalOf, param } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import { CelDuration, CelList, CelMap, CelOptional, CelTimestamp, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const K = param('K');
const V = param('V');
const OPTIONAL_V = optionalOf(V);
/** The zero of Go's time, which cel-go compares with: 0001-01-01T00:00:00Z. */
const ZERO_TIME_NANOS = -62_135_596_800_000_000_000n;

function isZero(value: CelValue): boolean {
  if (value === null || value === false || value === 0n || value === 0 || value === '') return true;
  if (value instanceof CelList || value instanceof CelMap) return value.size === 0;
  if (value instanceof CelUint) return value.value === 0n;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof CelTimestamp) return value.nanos === ZERO_TIME_NANOS;
  if (value instanceof CelDuration) return value.nanos === 0n;
  return value instanceof CelOptional && value.value === undefined;
}

function global(id: string, args: readonly CelType[], result: CelType, call: Overload['call']): Overload {
  return { id, member: false, args, result, call };
}

function member(id: string, args: readonly CelType[], result: CelType, call: Overload['call']): Overload {
  return { id, member: true, args, result, call };
}

const byIndex: Overload['call'] = ([operand, key], budget) =>
  optionalIndex(operand as CelValue, key as CelValue, budget);

export const optionalLibrary: Library = {
  functions: {
    'optional.of': [global('optional_of', [V], OPTIONAL_V, ([value]) => new CelOptional(value))],
    'optional.ofNonZeroValue': [
      global('optional_ofNonZeroValue', [V], OPTIONAL_V, ([value]) =>
        isZero(value as CelValue) ? NO_VALUE : new CelOptional(value),
      ),
    ],
    'optional.none': [global('optional_none', [], OPTIONAL_V, () => NO_VALUE)],
    value: [
      member('optional_value', [OPTIONAL_V], V, ([optional]) => {
        const { value } = optional as CelOptional;
        return value === undefined ? NONE_DEREFERENCE : value;
      }),
    ],
    hasValue: [
      member('optional_hasValue', [OPTIONAL_V], BOOL, ([optional]) => (optional as CelOptional).value !== undefined),
    ],
    or: [
      member('optional_or_optional', [OPTIONAL_V, OPTIONAL_V], OPTIONAL_V, ([optional, other]) =>
        (optional as CelOptional).value === undefined ? (other as CelOptional) : (optional as CelOptional),
      ),
    ],
    orValue: [
      member('optional_orValue_value', [OPTIONAL_V, V], V, ([optional, other]) => {
        const { value } = optional as CelOptional;
        return value === undefined ? (other as CelValue) : value;
      }),
    ],
    '_?._': [
      global('select_optional_field', [DYN, STRING], OPTIONAL_V, ([operand, field]) =>
        optionalSelect(operand as CelValue, field as string),
      ),
    ],
    '_[?_]': [
      global('list_optindex_optional_int', [listOf(V), INT], OPTIONAL_V, byIndex),
      global('optional_list_optindex_optional_int', [optionalOf(listOf(V)), INT], OPTIONAL_V, byIndex),
      global('map_optindex_optional_value', [mapOf(K, V), K], OPTIONAL_V, byIndex),
      global('optional_map_optindex_optional_value', [optionalOf(mapOf(K, V)), K], OPTIONAL_V, byIndex),
    ],
    '_[_]': [
      global('optional_list_index_int', [optionalOf(listOf(V)), INT], OPTIONAL_V, byIndex),
      global('optional_map_index_value', [optionalOf(mapOf(K, V)), K], OPTIONAL_V, byIndex),
    ],
  },
  macros: optionalMacros,
};
