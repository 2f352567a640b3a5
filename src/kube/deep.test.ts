import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { deepClone, deepEqual } from '#kube/deep.ts';

const equal: Record<string, [unknown, unknown]> = {
  'the order of keys does not matter': [
    { a: 1, b: { c: [] } },
    { b: { c: [] }, a: 1 },
  ],
  'an undefined property equals an absent one': [{ a: 1, b: undefined }, { a: 1 }],
  'undefined properties of different names are both absent': [{ a: undefined }, { b: undefined }],
};

const different: Record<string, [unknown, unknown]> = {
  'null differs from an absent property': [{ a: null }, {}],
  'an undefined property does not count as another property': [{ a: undefined }, { b: 1 }],
  'an empty array differs from an empty object': [[], {}],
  'the order of items matters': [
    [1, 2],
    [2, 1],
  ],
  'types matter': [{ a: 1 }, { a: '1' }],
  'an own key differs from an inherited one': [{ toString: null }, {}],
  'an own key __proto__ does not count as another key': [JSON.parse('{"__proto__":{}}'), { x: 1 }],
  'arrays of different lengths differ': [[1], [1, 1]],
};

for (const [sentence, [a, b]] of Object.entries(equal)) {
  test(`deepEqual: ${sentence}`, () => {
    assert.equal(deepEqual(a, b), true);
    assert.equal(deepEqual(b, a), true);
  });
}

for (const [sentence, [a, b]] of Object.entries(different)) {
  test(`deepEqual: ${sentence}`, () => {
    assert.equal(deepEqual(a, b), false);
    assert.equal(deepEqual(b, a), false);
  });
}

const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, 0, 1.5, '', 'x'),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom('a', 'b', 'constructor', 'toString'), tie('value'), { maxKeys: 3 }),
  ),
})).value;

test('a clone is equal and shares nothing with its source', () => {
  fc.assert(
    fc.property(json, (value) => {
      const copy = deepClone(value);
      assert.equal(JSON.stringify(copy), JSON.stringify(value));
      assert.ok(deepEqual(copy, value));
      if (typeof value === 'object' && value !== null) assert.notEqual(copy, value);
    }),
  );
});

test('a clone does not turn a key __proto__ into a prototype', () => {
  const copy = deepClone(JSON.parse('{"a":{"__proto__":{"evil":true}}}') as { a: object });
  assert.equal(Object.getPrototypeOf(copy.a), Object.prototype);
  assert.deepEqual(Object.keys(copy.a), []);
});
