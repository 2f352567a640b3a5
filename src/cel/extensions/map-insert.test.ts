import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fault, callForValue, map, plain, testCalls, uint } from '#cel/extensions/testing/call.ts';
import { insertOverloads } from '#cel/extensions/map-insert.ts';
import type { Library } from '#cel/library.ts';

const library: Library = { functions: { insert: insertOverloads } };

testCalls(library, {
  'an entry is added': [
    'insert',
    [map(['a', 1n]), 'b', 2n],
    new Map([
      ['a', 1n],
      ['b', 2n],
    ]),
  ],
  'a key is not added twice': ['insert', [map(['a', 1n]), 'a', 2n], fault('insert failed: key a already exists')],
  'an equal key is not added': ['insert', [map([1n, 1n]), uint(1n), 2n], fault('insert failed: key 1 already exists')],
  'null is not a valid key': ['insert', [map(), null, 2n], fault('unsupported key type')],
  'all entries of a map are added': [
    'insert',
    [map(['a', 1n]), map([true, 2n], [3n, 4n])],
    new Map<unknown, unknown>([
      ['a', 1n],
      [true, 2n],
      [3n, 4n],
    ]),
  ],
  'a map with a duplicate key is not added': [
    'insert',
    [map(['a', 1n]), map(['b', 2n], ['a', 3n])],
    fault('insert failed: key a already exists'),
  ],
});

test('a map does not see entries added to its successors', () => {
  const first = callForValue(library, 'insert', [map(), 'a', 1n]);
  const second = callForValue(library, 'insert', [first, 'b', 2n]);
  const other = callForValue(library, 'insert', [first, 'b', 3n]);
  assert.deepEqual(plain(first), new Map([['a', 1n]]));
  assert.deepEqual(
    [...(plain(second) as Map<string, bigint>)],
    [
      ['a', 1n],
      ['b', 2n],
    ],
  );
  assert.deepEqual(
    [...(plain(other) as Map<string, bigint>)],
    [
      ['a', 1n],
      ['b', 3n],
    ],
  );
});
