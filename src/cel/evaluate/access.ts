/** Access to fields and elements: `a.b`, `has(a.b)`, `a[b]`, `a.?b`, `a[?b]`, `a in b`. */
import { LOOKUP_COST } from '#cel/limits/budget.ts';
import type { Budget } from '#cel/limits/budget.ts';
import { unescapeFieldName } from '#cel/check/field-names.ts';
import { areEqual } from '#cel/evaluate/equal.ts';
import { NO_SUCH_OVERLOAD, noSuchKey, describeKey } from '#cel/evaluate/fault.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import { CelFault, CelList, CelMap, CelOptional, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

export const NO_VALUE = new CelOptional(undefined);

export function selectField(operand: CelValue, field: string): CelValue | CelFault {
  if (operand instanceof CelMap) return requireEntry(operand.get(field), field);
  if (operand instanceof CelOptional) return optionalSelect(operand, field);
  return noSuchKey(field);
}

/**
 * Returns a function that applies `look` to the field with this name. The name can be escaped (`__namespace__`,
 * `x__dash__y`), but a field with exactly the written name takes precedence.
 */
export function fieldAccessor<T>(
  look: (operand: CelValue, field: string) => T,
  written: string,
): (operand: CelValue) => T {
  const unescaped = unescapeFieldName(written);
  if (unescaped === undefined || unescaped === written) return (operand) => look(operand, written);
  return (operand) => {
    const isEscaped = hasField(operand, written) !== true && hasField(operand, unescaped) === true;
    return look(operand, isEscaped ? unescaped : written);
  };
}

function requireEntry(value: CelValue | CelFault | undefined, key: CelValue): CelValue | CelFault {
  return value === undefined ? noSuchKey(key) : value;
}

export function hasField(operand: CelValue, field: string): boolean | CelFault {
  if (operand instanceof CelMap) return operand.has(field);
  if (operand instanceof CelOptional) return operand.value !== undefined && hasField(operand.value, field);
  return noSuchKey(field);
}

export function indexElement(operand: CelValue, key: CelValue, budget: Budget): CelValue | CelFault {
  budget.charge(LOOKUP_COST);
  if (operand instanceof CelMap) return requireEntry(operand.get(key), key);
  if (operand instanceof CelOptional) return optionalIndex(operand, key, budget);
  if (!(operand instanceof CelList)) return NO_SUCH_OVERLOAD;
  const at = listIndex(key);
  if (at instanceof CelFault) return at;
  return at >= 0 && at < operand.size ? operand.at(at) : new CelFault(`index out of bounds: ${describeKey(key)}`);
}

function listIndex(key: CelValue): number | CelFault {
  if (typeof key === 'bigint') return Number(key);
  if (key instanceof CelUint) return Number(key.value);
  if (typeof key !== 'number') return new CelFault(`unsupported index type '${typeOfValue(key).name}' in list`);
  return Number.isInteger(key) ? key : new CelFault(`unsupported index value ${key} in list`);
}

/** Returns none for a missing field, and for any field of none. */
export function optionalSelect(operand: CelValue, field: string): CelValue | CelFault {
  const value = operand instanceof CelOptional ? operand.value : operand;
  if (value === undefined) return NO_VALUE;
  if (!(value instanceof CelMap)) return noSuchKey(field);
  return lookUpOptional(value, field);
}

export function optionalIndex(operand: CelValue, key: CelValue, budget: Budget): CelValue | CelFault {
  budget.charge(LOOKUP_COST);
  const value = operand instanceof CelOptional ? operand.value : operand;
  if (value === undefined) return NO_VALUE;
  if (value instanceof CelMap) return lookUpOptional(value, key);
  if (!(value instanceof CelList)) return NO_SUCH_OVERLOAD;
  const at = listIndex(key);
  if (at instanceof CelFault) return at;
  return at >= 0 && at < value.size ? new CelOptional(value.at(at)) : NO_VALUE;
}

function lookUpOptional(map: CelMap, key: CelValue): CelOptional | CelFault {
  const value = map.get(key);
  if (value instanceof CelFault) return value;
  return value === undefined ? NO_VALUE : new CelOptional(value);
}

export function contains(element: CelValue, container: CelValue, budget: Budget): boolean | CelFault {
  if (container instanceof CelMap) {
    budget.charge(LOOKUP_COST);
    return container.has(element);
  }
  if (!(container instanceof CelList)) return NO_SUCH_OVERLOAD;
  const { size } = container;
  for (let at = 0; at < size; at += 1) {
    budget.charge(1);
    const other = container.at(at);
    if (other === element && typeof other !== 'number') return true;
    // Two ints that are not identical are not equal.
    if (typeof other === 'bigint' && typeof element === 'bigint') continue;
    if (areEqual(element, other, budget)) return true;
  }
  return false;
}
