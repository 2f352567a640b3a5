/** Run-time type tests for the arguments of overloads. */
import type { Budget } from '#cel/budget.ts';
import type { CelType, PrimitiveName } from '#cel/type.ts';
import { CelDuration, CelFault, CelList, CelMap, CelOpaque, CelOptional } from '#cel/value.ts';
import { CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

/** Undefined if every value matches. */
export type TypeTest = ((value: CelValue, budget: Budget) => boolean) | undefined;

const PRIMITIVES: Readonly<Record<PrimitiveName, TypeTest>> = {
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

/** Builds the test of a type, once per overload. The test reads elements only if the type specifies their type. */
export function buildTypeTest(type: CelType): TypeTest {
  switch (type.kind) {
    case 'primitive':
      return PRIMITIVES[type.name];
    case 'param':
      return undefined;
    case 'list':
      return listTest(buildTypeTest(type.element));
    case 'map':
      return mapTest(buildTypeTest(type.key), buildTypeTest(type.value));
    case 'object':
      return (value) => value instanceof CelMap;
    case 'optional':
      return optionalTest(buildTypeTest(type.of));
    case 'type':
      return (value) => value instanceof CelTypeValue;
    case 'opaque': {
      const { name } = type;
      return (value) => value instanceof CelOpaque && value.type.name === name;
    }
  }
}

function listTest(element: TypeTest): TypeTest {
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

function mapTest(key: TypeTest, element: TypeTest): TypeTest {
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

function optionalTest(inner: TypeTest): TypeTest {
  if (inner === undefined) return (value) => value instanceof CelOptional;
  return (value, budget) => value instanceof CelOptional && (value.value === undefined || inner(value.value, budget));
}
