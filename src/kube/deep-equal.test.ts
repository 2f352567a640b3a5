import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deepEqual } from '#kube/deep.ts';

const cases: Record<string, { a: unknown; b: unknown; same: boolean }> = {
  'equal trees, keys in another order': {
    a: { x: [1, { y: 'a' }], z: null },
    b: { z: null, x: [1, { y: 'a' }] },
    same: true,
  },
  'absent and undefined': { a: { x: undefined, y: 1 }, b: { y: 1 }, same: true },
  'undefined and absent': { a: { y: 1 }, b: { y: 1, x: undefined }, same: true },
  'absent and null': { a: {}, b: { x: null }, same: false },
  'one more key': { a: { x: 1 }, b: { x: 1, y: 2 }, same: false },
  'lists of another order': { a: [1, 2], b: [2, 1], same: false },
  'lists of another length': { a: [1], b: [1, 2], same: false },
  'a list and a map': { a: [], b: {}, same: false },
  'a number and its text': { a: 1, b: '1', same: false },
  'a key that every object inherits': { a: { toString: {} }, b: {}, same: false },
};

for (const [sentence, { a, b, same }] of Object.entries(cases)) {
  test(`deepEqual: ${sentence}`, () => {
    assert.equal(deepEqual(a, b), same);
    assert.equal(deepEqual(b, a), same);
  });
}
