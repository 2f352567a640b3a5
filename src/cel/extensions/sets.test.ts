import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { call, list, testCalls, uint } from '#cel/extensions/testing/call.ts';
import { setsLibrary } from '#cel/extensions/sets.ts';

testCalls(setsLibrary, {
  'every list contains the empty one': ['sets.contains', [list(), list()], true],
  'the empty list contains nothing else': ['sets.contains', [list(), list(1n)], false],
  'contains requires all elements': ['sets.contains', [list(1n, 2n, 3n), list(2n, 4n)], false],
  'contains ignores duplicates': ['sets.contains', [list(1n, 2n), list(2n, 2n, 1n)], true],
  'numbers are equal across their types': ['sets.contains', [list(1n, 2n), list(uint(1n), 2)], true],
  'lists are equal by their elements': ['sets.contains', [list(list(1n), list(2n, 3n)), list(list(2n, 3n))], true],
  'equivalent ignores order and duplicates': ['sets.equivalent', [list(1n, 2n, 2n), list(2n, 1n)], true],
  'equivalent compares in both directions': ['sets.equivalent', [list(1n, 2n), list(1n)], false],
  'intersects requires one common element': ['sets.intersects', [list(1n, 2n), list(3n, 2n)], true],
  'intersects is false without a common element': ['sets.intersects', [list(1n), list(2n)], false],
  'nothing intersects the empty list': ['sets.intersects', [list(), list(1n)], false],
});

test('a budget limits the comparison of long lists', () => {
  const a = list(...Array.from({ length: 5000 }, (_, i) => BigInt(i)));
  const b = list(...Array.from({ length: 5000 }, (_, i) => BigInt(-1 - i)));
  assert.throws(() => call(setsLibrary, 'sets.intersects', [a, b], new Budget(1_000_000)), CostLimitError);
});
