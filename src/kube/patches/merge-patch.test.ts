import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { applyMergePatch } from '#kube/patches/merge-patch.ts';
import { isRecord } from '#kube/meta.ts';

/** Document, patch and result, from appendix A of RFC 7386. */
const rfc: [unknown, unknown, unknown][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [doc, patch, want] of rfc) {
  test(`${JSON.stringify(doc)} with ${JSON.stringify(patch)}`, () => {
    const before = JSON.stringify([doc, patch]);
    assert.deepEqual(applyMergePatch(doc, patch), want);
    assert.equal(JSON.stringify([doc, patch]), before, 'the inputs are not changed');
  });
}

test('ignores a key __proto__', () => {
  const patch: unknown = JSON.parse('{"__proto__":{"evil":1},"a":{"__proto__":{"evil":1},"b":1}}');
  const result = applyMergePatch({}, patch) as { a: object };
  assert.deepEqual(Object.keys(result), ['a']);
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.deepEqual(Object.keys(result.a), ['b']);
  assert.equal(Object.getPrototypeOf(result.a), Object.prototype);
});

test('does not merge into inherited members', () => {
  assert.deepEqual(applyMergePatch({}, { constructor: { a: 1 } }), { constructor: { a: 1 } });
});

const keys = fc.constantFrom('a', 'b', 'c', 'constructor');
const tree = (scalars: fc.Arbitrary<unknown>) =>
  fc.letrec<{ value: unknown }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      scalars,
      fc.array(scalars, { maxLength: 3 }),
      fc.dictionary(keys, tie('value'), { maxKeys: 4, noNullPrototype: true }),
    ),
  })).value;
const withNull = tree(fc.constantFrom(null, true, 1, 'x'));
const nullFree = tree(fc.constantFrom(true, 1, 'x', ''));

function diff(from: unknown, to: unknown): unknown {
  if (!isRecord(from) || !isRecord(to)) return to;
  const removed = Object.keys(from).filter((key) => !Object.hasOwn(to, key));
  const entries: [string, unknown][] = removed.map((key) => [key, null]);
  for (const key of Object.keys(to)) {
    entries.push([key, Object.hasOwn(from, key) ? diff(from[key], to[key]) : to[key]]);
  }
  return Object.fromEntries(entries);
}

test('the difference to a target without nulls produces the target', () => {
  fc.assert(
    fc.property(withNull, nullFree, (doc, target) => {
      // Where a map replaces a scalar, the merge starts from an empty map, and so does the difference.
      assert.deepEqual(applyMergePatch(doc, diff(doc, target)), target);
    }),
    { numRuns: 300 },
  );
});

test('a second application changes nothing, and the inputs stay unchanged', () => {
  fc.assert(
    fc.property(withNull, withNull, (doc, patch) => {
      const before = JSON.stringify([doc, patch]);
      const once = applyMergePatch(doc, patch);
      assert.deepEqual(applyMergePatch(once, patch), once);
      assert.equal(JSON.stringify([doc, patch]), before);
    }),
    { numRuns: 300 },
  );
});
