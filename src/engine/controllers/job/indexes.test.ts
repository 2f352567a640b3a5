import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  countIndexes,
  countShared,
  firstMissing,
  formatIndexes,
  hasIndex,
  indexesOf,
  parseIndexes,
  unionOf,
} from '#engine/controllers/job/indexes.ts';

const texts: Record<string, [text: string, completions: number, want: string]> = {
  'an empty set': ['', 5, ''],
  'single indexes and ranges': ['0,3-5,7', 10, '0,3-5,7'],
  'two neighbours are not written as a range': ['1-2', 5, '1,2'],
  'neighbours are merged': ['1,2,3', 5, '1-3'],
  'indexes that are too large are skipped': ['0,3-9,12', 5, '0,3,4'],
  'invalid parts are skipped': ['0,x,-3,2-', 5, '0'],
};
for (const [name, [text, completions, want]] of Object.entries(texts)) {
  test(`indexes: ${name}`, () => assert.equal(formatIndexes(parseIndexes(text, completions)), want));
}

test('sets of indexes', () => {
  const some = indexesOf([5, 1, 2, 2, 9]);
  assert.equal(formatIndexes(some), '1,2,5,9');
  assert.equal(countIndexes(some), 4);
  assert.deepEqual([hasIndex(some, 2), hasIndex(some, 3)], [true, false]);
  assert.equal(formatIndexes(unionOf(some, indexesOf([3, 4]))), '1-5,9');
  assert.equal(countShared(some, parseIndexes('2-8', 10)), 2);
});

const missing: Record<string, [present: string, completions: number, count: number, want: number[]]> = {
  'all are missing': ['', 3, 9, [0, 1, 2]],
  'the gaps in order': ['1,3', 6, 9, [0, 2, 4, 5]],
  'no more than requested': ['0', 9, 2, [1, 2]],
  'none is missing': ['0-2', 3, 9, []],
};
for (const [name, [present, completions, count, want]] of Object.entries(missing)) {
  test(`missing indexes: ${name}`, () => {
    assert.deepEqual(firstMissing(parseIndexes(present, completions), completions, count), want);
  });
}
