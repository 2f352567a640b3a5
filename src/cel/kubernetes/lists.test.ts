import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { call, fault, list, testCalls, uint } from '#cel/extensions/testing/call.ts';
import { listsLibrary } from '#cel/kubernetes/lists.ts';
import { regexLibrary } from '#cel/kubernetes/regex.ts';
import { CelDuration } from '#cel/value.ts';

const second = new CelDuration(1_000_000_000n);

testCalls(listsLibrary, {
  'isSorted of an empty list': ['isSorted', [list()], true],
  'isSorted with equal elements': ['isSorted', [list('a', 'b', 'b', 'c')], true],
  'not sorted': ['isSorted', [list(2, 1)], false],
  'bools are sorted from false to true': ['isSorted', [list(false, true)], true],
  'sum of an empty list': ['sum', [list()], 0n],
  'sum of ints': ['sum', [list(1n, 3n)], 4n],
  'sum of uints': ['sum', [list(uint(1n), uint(3n))], { uint: 4n }],
  'sum of doubles': ['sum', [list(1, 3.5)], 4.5],
  'sum of durations': ['sum', [list(second, second)], new CelDuration(2_000_000_000n)],
  'sum that overflows is a fault': ['sum', [list(2n ** 63n - 1n, 1n)], fault('integer overflow')],
  'sum of texts is a fault': ['sum', [list('a', 'b')], fault('no such overload')],
  'sum of one text is a fault': ['sum', [list('a')], fault('no such overload')],
  'sum of ints and doubles is a fault': ['sum', [list(1n, 1)], fault('no such overload')],
  min: ['min', [list(3n, 1n, 2n)], 1n],
  'min of texts': ['min', [list('b', 'a')], 'a'],
  max: ['max', [list(3n, 1n, 2n)], 3n],
  'max of doubles': ['max', [list(0.5, 2.5, 1.5)], 2.5],
  'min of an empty list is a fault': ['min', [list()], fault('min called on empty list')],
  'max of an empty list is a fault': ['max', [list()], fault('max called on empty list')],
  'max of values without an order is a fault': ['max', [list(list(), list())], fault('no such overload')],
  'indexOf finds the first': ['indexOf', [list(1n, 2n, 2n), 2n], 1n],
  'indexOf compares numbers across types': ['indexOf', [list(1n, 2n), 2], 1n],
  'indexOf of a missing element': ['indexOf', [list(1), 1.1], -1n],
  'lastIndexOf finds the last': ['lastIndexOf', [list('a', 'b', 'b', 'c'), 'b'], 2n],
  'lastIndexOf of a missing element': ['lastIndexOf', [list(), 'x'], -1n],
});

testCalls(regexLibrary, {
  'find returns the first match': ['find', ['abc 123 45', '[0-9]+'], '123'],
  'find returns an empty text without a match': ['find', ['abc', 'xyz'], ''],
  'find can match an empty text': ['find', ['abc 123', '[0-9]*'], ''],
  'findAll returns all matches': ['findAll', ['123 abc 456', '[0-9]+'], ['123', '456']],
  'findAll skips an empty match directly after a match': ['findAll', ['12ab3', '[0-9]*'], ['12', '', '3']],
  'findAll stops at the limit': ['findAll', ['1 2 3', '[0-9]', 2n], ['1', '2']],
  'findAll with a negative limit has no limit': ['findAll', ['1 2 3', '[0-9]', -1n], ['1', '2', '3']],
  'findAll with limit zero is empty': ['findAll', ['1 2 3', '[0-9]', 0n], []],
  'findAll keeps code points whole': ['findAll', ['a😀', '.'], ['a', '😀']],
  'an invalid pattern is a fault': [
    'find',
    ['a', '('],
    fault('Illegal regex: error parsing regexp: missing closing ): `(`'),
  ],
});

const LONG = 'a'.repeat(100_000);
const hostile: Record<string, [string, string]> = {
  'many matches that each read the rest': ['a*b|a', LONG],
  'empty matches': ['', LONG],
  'a pattern with many states': ['.{0,1000}c$', `c${LONG}`],
};
for (const [what, [pattern, text]] of Object.entries(hostile)) {
  test(`a budget limits ${what}`, () => {
    const budget = new Budget(1_000_000);
    assert.throws(() => call(regexLibrary, 'findAll', [text, pattern], budget), CostLimitError);
  });
}
