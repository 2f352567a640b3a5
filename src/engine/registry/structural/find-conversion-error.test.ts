import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { findConversionError } from '#engine/registry/structural/find-conversion-error.ts';
import {
  anything,
  bool,
  bytes,
  int32,
  intOrString,
  list,
  map,
  num,
  obj,
  quantity,
  str,
  time,
} from '#kube/schema-dsl.ts';

const schema = obj({
  text: str(),
  on: bool(),
  count: int32(),
  ratio: num(),
  data: map(str()),
  secret: map(bytes()),
  args: list(str()),
  inner: obj({ name: str() }),
  items: list(obj({ size: quantity() })),
  port: intOrString(),
  at: time(),
  free: anything(),
});

const QUANTITY = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const cases: Record<string, { object: Record<string, unknown>; want: string | undefined }> = {
  'valid values': {
    object: {
      text: 'a',
      on: true,
      count: 1,
      ratio: 1,
      data: { a: 'b' },
      secret: { a: 'aGk=' },
      args: ['a'],
      inner: { name: 'x', other: 1 },
      items: [{ size: '1Gi' }, { size: 1.5 }],
      port: 'http',
      at: '2026-01-01T00:00:00Z',
      free: [1],
      other: 1,
    },
    want: undefined,
  },
  'null for absent values': { object: { text: null, inner: null, args: null }, want: undefined },
  'a number for a string': { object: { text: 1 }, want: 'cannot convert int64 to string' },
  'a number in a map of strings': { object: { data: { a: 1 } }, want: 'cannot convert int64 to string' },
  'a fraction for a string': { object: { text: 1.5 }, want: 'unrecognized type: string' },
  'a bool for a string': { object: { text: true }, want: 'unrecognized type: string' },
  'a map for a string': { object: { text: {} }, want: 'unrecognized type: string' },
  'a string for a number': { object: { count: '1' }, want: 'unrecognized type: int32' },
  'a fraction for a whole number': { object: { count: 1.5 }, want: 'cannot convert float64 to int32' },
  'a number that is too large': { object: { count: 2 ** 40 }, want: 'cannot convert int64 to int32' },
  'a string for a fraction': { object: { ratio: 'x' }, want: 'unrecognized type: float64' },
  'a string for a bool': { object: { on: 'true' }, want: 'unrecognized type: bool' },
  'a list for a map': { object: { data: ['a'] }, want: 'cannot restore map from slice' },
  'a string for a map': { object: { data: 'a' }, want: 'cannot restore map from string' },
  'a map for a list': { object: { args: {} }, want: 'cannot restore slice from map' },
  'a list for a struct': { object: { inner: [] }, want: 'cannot restore struct from: slice' },
  'a wrong item': { object: { args: ['a', 1] }, want: 'cannot convert int64 to string' },
  'invalid bytes': {
    object: { secret: { a: 'ab!=' } },
    want: 'error decoding from json: illegal base64 data at input byte 2',
  },
  'a number for bytes': { object: { secret: { a: 1 } }, want: 'cannot restore slice from int64' },
  'an invalid quantity': { object: { items: [{ size: '1 GB' }] }, want: QUANTITY },
  'a bool for a number or string': {
    object: { port: true },
    want: 'json: cannot unmarshal bool into Go value of type string',
  },
  'a number for a time': { object: { at: 1 }, want: 'json: cannot unmarshal number into Go value of type string' },
  'the fields of a struct in their order, not the document’s': {
    object: { args: {}, text: 1 },
    want: 'cannot convert int64 to string',
  },
};

describe('findConversionError', () => {
  const compiled = compileSchema(schema, { root: false });
  for (const [name, { object, want }] of Object.entries(cases)) {
    it(name, () => {
      assert.equal(findConversionError(object, schema), want);
      assert.equal(compiled.decodes(object), want === undefined, 'the decoder must agree');
    });
  }
});
