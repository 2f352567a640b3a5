import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { adaptJson, toJson } from '#cel/evaluate/adapt-json.ts';
import { ArrayList } from '#cel/evaluate/array-list.ts';
import { EntryMap } from '#cel/evaluate/entry-map.ts';
import { typeOfValue } from '#cel/evaluate/type-of.ts';
import type { Schema } from '#kube/schema.ts';
import { CelFault, CelMap, CelOptional, CelTimestamp, CelUint } from '#cel/value.ts';
import type { CelValue } from '#cel/value.ts';

const schema: Schema = {
  type: 'object',
  properties: {
    count: { type: 'integer' },
    ratio: { type: 'number' },
    at: { type: 'string', format: 'date-time' },
    day: { type: 'string', format: 'date' },
    after: { type: 'string', format: 'duration' },
    data: { type: 'string', format: 'byte' },
    port: { 'x-kubernetes-int-or-string': true },
    list: { type: 'array', items: { type: 'number' } },
  },
  additionalProperties: { type: 'number' },
};

/** Returns the type and the JSON value of one field, or the fault. */
function field(name: string, value: unknown, as?: Schema): string {
  const map = adaptJson({ [name]: value }, as);
  assert.ok(map instanceof CelMap);
  const got = map.get(name);
  if (got === undefined) return 'missing';
  return got instanceof CelFault ? got.message : `${typeOfValue(got).name} ${JSON.stringify(toJson(got))}`;
}

const cases: Record<string, readonly [name: string, value: unknown, as: Schema | undefined, want: string]> = {
  'whole numbers are ints': ['x', 3, undefined, 'int 3'],
  'fractions are doubles': ['x', 3.5, undefined, 'double 3.5'],
  'an integer beyond 64 bits is a double': ['x', 1e19, undefined, 'double 10000000000000000000'],
  'a whole number with type number is a double': ['ratio', 3, schema, 'double 3'],
  'a number with type integer is an int': ['count', 3, schema, 'int 3'],
  'a time': ['at', '2024-02-29T01:02:03.5+01:00', schema, 'google.protobuf.Timestamp "2024-02-29T00:02:03.5Z"'],
  'an invalid date-time is a fault': ['at', 'soon', schema, 'Invalid date-time format: soon'],
  'a day': ['day', '2024-02-29', schema, 'google.protobuf.Timestamp "2024-02-29T00:00:00Z"'],
  'an invalid date is a fault': ['day', '2023-02-29', schema, 'Invalid date format: 2023-02-29'],
  'a duration': ['after', '1h0.5s', schema, 'google.protobuf.Duration "3600.5s"'],
  bytes: ['data', 'AAEC', schema, 'bytes "AAEC"'],
  'invalid base64 is a fault': ['data', '?', schema, 'Invalid byte format: illegal base64 data'],
  'a string that may be an int': ['port', 'http', schema, 'string "http"'],
  'an int that may be a string': ['port', 80, schema, 'int 80'],
  'list elements use the schema of items': ['list', [1], schema, 'list [1]'],
  'other properties use the schema of additionalProperties': ['other', 1, schema, 'double 1'],
  'null is a value': ['x', null, undefined, 'null_type null'],
  'undefined is a missing field': ['x', undefined, undefined, 'missing'],
};
for (const [name, [key, value, as, want]] of Object.entries(cases)) {
  test(name, () => assert.equal(field(key, value, as), want));
}

test('a map has only its own keys, including unusual ones', () => {
  const map = adaptJson(JSON.parse('{"__proto__": 1, "a": 2}')) as CelMap;
  assert.deepEqual([...map.keys()], ['__proto__', 'a']);
  assert.equal(map.get('__proto__'), 1n);
  assert.equal(map.has('toString'), false);
  assert.equal(map.get('constructor'), undefined);
  assert.deepEqual(Object.keys(toJson(map) as object), ['__proto__', 'a']);
});

test('each part is converted once', () => {
  const map = adaptJson({ a: { b: [{}] } }) as CelMap;
  assert.equal(map.get('a'), map.get('a'));
});

const results: Record<string, readonly [value: CelValue, want: unknown]> = {
  'ints within 53 bits': [5n, 5],
  'ints beyond 53 bits': [2n ** 60n, '1152921504606846976'],
  uints: [new CelUint(7n), 7],
  times: [new CelTimestamp(1_500_000_000n), '1970-01-01T00:00:01.5Z'],
  'an optional value': [new CelOptional('x'), 'x'],
  none: [new CelOptional(undefined), null],
  'maps with keys of any type': [
    EntryMap.of([
      [1n, 'a'],
      [true, 'b'],
    ]) as CelMap,
    { 1: 'a', true: 'b' },
  ],
};
for (const [name, [value, want]] of Object.entries(results)) {
  test(`converts to JSON: ${name}`, () => assert.deepEqual(toJson(value), want));
}

test('a small value that is huge as JSON exceeds the budget', () => {
  let value: CelValue = 'x';
  for (let level = 0; level < 60; level += 1) value = new ArrayList([value, value]);
  assert.throws(() => toJson(value, new Budget(10_000)), CostLimitError);
});
