import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deepEqual } from '#kube/deep.ts';

const cases: Record<string, { a: unknown; b: unknown; same: boolean }> = {
  'trees with keys in another order are equal': {
    a: { x: [1, { y: 'a' }], z: null },
    b: { z: null, x: [1, { y: 'a' }] },
    same: true,
  },
  'an undefined key equals an absent one': { a: { x: undefined, y: 1 }, b: { y: 1 }, same: true },
  'an absent key equals an undefined one': { a: { y: 1 }, b: { y: 1, x: undefined }, same: true },
  'an absent key differs from null': { a: {}, b: { x: null }, same: false },
  'an additional key makes a difference': { a: { x: 1 }, b: { x: 1, y: 2 }, same: false },
  'lists in another order differ': { a: [1, 2], b: [2, 1], same: false },
  'lists of different lengths differ': { a: [1], b: [1, 2], same: false },
  'a list differs from a map': { a: [], b: {}, same: false },
  'a number differs from its text': { a: 1, b: '1', same: false },
  'an own key differs from an inherited one': { a: { toString: {} }, b: {}, same: false },
};

for (const [sentence, { a, b, same }] of Object.entries(cases)) {
  test(`deepEqual: ${sentence}`, () => {
    assert.equal(deepEqual(a, b), same);
    assert.equal(deepEqual(b, a), same);
  });
}
