/** The types of values, and the types that every expression can name. */
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, UINT } from '#cel/type.ts';
import { listOf, mapOf, optionalOf, typeOf as metaOf } from '#cel/type.ts';
import type { CelType } from '#cel/type.ts';
import { CelDuration, CelList, CelMap, CelOptional, CelTimestamp, CelTypeValue, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const named = (name: string, type: CelType) => new CelTypeValue(name, type);

const types = {
  bool: named('bool', BOOL),
  int: named('int', INT),
  uint: named('uint', UINT),
  double: named('double', DOUBLE),
  string: named('string', STRING),
  bytes: named('bytes', BYTES),
  list: named('list', listOf(DYN)),
  map: named('map', mapOf(DYN, DYN)),
  null: named('null_type', NULL),
  type: named('type', metaOf(DYN)),
  timestamp: named('google.protobuf.Timestamp', TIMESTAMP),
  duration: named('google.protobuf.Duration', DURATION),
  optional: named('optional_type', optionalOf(DYN)),
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
  return named(value.type.name, value.type);
}
