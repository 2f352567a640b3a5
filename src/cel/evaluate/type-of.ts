/** The types of values, and the types that every expression can name. */
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, UINT } from '#cel/type.ts';
import { listOf, mapOf, optionalOf, typeOf as metaOf } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import { CelDuration, CelList, CelMap, CelOptional, CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const typeValue = (name: string, type: CelType) => new CelTypeValue(name, type);

const types = {
  bool: typeValue('bool', BOOL),
  int: typeValue('int', INT),
  uint: typeValue('uint', UINT),
  double: typeValue('double', DOUBLE),
  string: typeValue('string', STRING),
  bytes: typeValue('bytes', BYTES),
  list: typeValue('list', listOf(DYN)),
  map: typeValue('map', mapOf(DYN, DYN)),
  null: typeValue('null_type', NULL),
  type: typeValue('type', metaOf(DYN)),
  timestamp: typeValue('google.protobuf.Timestamp', TIMESTAMP),
  duration: typeValue('google.protobuf.Duration', DURATION),
  optional: typeValue('optional_type', optionalOf(DYN)),
} as const;

/** The types that every environment declares: `int`, `list`, `google.protobuf.Duration`. Libraries add more. */
export const typeNames: ReadonlyMap<string, CelTypeValue> = new Map(
  Object.values(types).map((type) => [type.name, type]),
);

export function typeOfValue(value: CelValue): CelTypeValue {
  if (typeof value === 'string') return types.string;
  if (typeof value === 'bigint') return types.int;
  if (typeof value === 'boolean') return types.bool;
  if (typeof value === 'number') return types.double;
  if (value === null) return types.null;
  if (value instanceof CelMap) return types.map;
  if (value instanceof CelList) return types.list;
  if (value instanceof CelUint) return types.uint;
  if (value instanceof Uint8Array) return types.bytes;
  if (value instanceof CelTimestamp) return types.timestamp;
  if (value instanceof CelDuration) return types.duration;
  if (value instanceof CelOptional) return types.optional;
  if (value instanceof CelTypeValue) return types.type;
  return typeValue(value.type.name, value.type);
}
