import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findGrowth, type Sample } from '#test/support/growth.ts';

const OPTIONS = { tolerance: { heap: 1.05 }, noisy: new Set(['heap']) };
const samplesOf = (name: string, amounts: readonly number[]): Sample[] => amounts.map((amount) => ({ [name]: amount }));

const cases: Record<string, { name: string; amounts: readonly number[]; want: readonly string[] }> = {
  'a constant amount does not grow': { name: 'objects', amounts: [5, 5, 5, 5], want: [] },
  'one object more is growth': { name: 'objects', amounts: [5, 5, 5, 6], want: ['objects: 5 -> 6'] },
  'an amount that goes up and down does not grow': { name: 'objects', amounts: [3, 9, 4, 9, 2, 8], want: [] },
  'a heap that grows with each sample is found': {
    name: 'heap',
    amounts: [100, 103, 106, 109, 112, 115],
    want: ['heap: 103 -> 112'],
  },
  'a single high sample of the heap is no growth': { name: 'heap', amounts: [100, 101, 99, 100, 180, 101], want: [] },
};

for (const [title, { name, amounts, want }] of Object.entries(cases)) {
  test(title, () => assert.deepEqual(findGrowth(samplesOf(name, amounts), OPTIONS), want));
}
