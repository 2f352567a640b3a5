/** Run-time type matchers for the arguments of overloads. */
import type { Budget } from '#cel/limits/budget.ts';
import type { CelType, PrimitiveName } from '#cel/type.ts';
import { CelDuration, CelFault, CelList, CelMap, CelOpaque, CelOptional } from '#cel/value.ts';
import { CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

/** Undefined if every value matches. */
export type TypeMatcher = ((value: CelValue, budget: Budget) => boolean) | undefined;

const PRIMITIVES: Readonly<Record<PrimitiveName, TypeMatcher>> = {
  dyn: undefined,
  bool: (value) => typeof value === 'boolean',
  int: (value) => typeof value === 'bigint',
  uint: (value) => value instanceof CelUint,
  double: (value) => typeof value === 'number',
  string: (value) => typeof value === 'string',
  bytes: (value) => value instanceof Uint8Array,
  null_type: (value) => value === null,
  'google.protobuf.Timestamp': (value) => value instanceof CelTimestamp,
  'google.protobuf.Duration': (value) => value instanceof CelDuration,
};

/** Builds the matcher of a type, once per overload. The matcher reads elements only if the type specifies their type. */
export function buildTypeMatcher(type: CelType): TypeMatcher {
  switch (type.kind) {
    case 'primitive':
      return PRIMITIVES[type.name];
    case 'param':
      return undefined;
    case 'list':
      return listMatcher(buildTypeMatcher(type.element));
    case 'map':
      return mapMatcher(buildTypeMatcher(type.key), buildTypeMatcher(type.value));
    case 'object':
      return (value) => value instanceof CelMap;
    case 'optional':
      return optionalMatcher(buildTypeMatcher(type.of));
    case 'type':
      return (value) => value instanceof CelTypeValue;
    case 'opaque': {
      const { name } = type;
      return (value) => value instanceof CelOpaque && value.type.name === name;
    }
  }
}

function listMatcher(element: TypeMatcher): TypeMatcher {
  if (element === undefined) return (value) => value instanceof CelList;
  return (value, budget) => {
    if (!(value instanceof CelList)) return false;
    const { size } = value;
    for (let at = 0; at < size; at += 1) {
      budget.charge(1);
      if (!element(value.at(at), budget)) return false;
    }
    return true;
  };
}

function mapMatcher(key: TypeMatcher, element: TypeMatcher): TypeMatcher {
  if (key === undefined && element === undefined) return (value) => value instanceof CelMap;
  return (map, budget) => {
    if (!(map instanceof CelMap)) return false;
    for (const each of map.keys()) {
      budget.charge(1);
      if (key !== undefined && !key(each, budget)) return false;
      const value = map.get(each);
      if (element === undefined || value === undefined) continue;
      if (value instanceof CelFault || !element(value, budget)) return false;
    }
    return true;
  };
}

function optionalMatcher(inner: TypeMatcher): TypeMatcher {
  if (inner === undefined) return (value) => value instanceof CelOptional;
  return (value, budget) => value instanceof CelOptional && (value.value === undefined || inner(value.value, budget));
}
