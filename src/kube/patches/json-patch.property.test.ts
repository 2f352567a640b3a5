import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { ApiError } from '#kube/api-error.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/patches/json-patch.ts';
import { formatPointer } from '#kube/patches/json-pointer.ts';
import { isRecord } from '#kube/meta.ts';

const keys = fc.constantFrom('a', 'b', 'c/d', 'e~f', '', '0', 'constructor', 'toString');
const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom(null, true, false, 0, 1, -1.5, '', 'x'),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(keys, tie('value'), { maxKeys: 4 }),
  ),
})).value;

type Operation = { op: string; path: string; value?: unknown };

/** Returns a patch from one document to another; not the shortest, but one that uses every kind of edit. */
function diff(from: unknown, to: unknown, path: readonly (string | number)[] = []): Operation[] {
  const pointer = (key: string | number) => formatPointer([...path, key]);
  if (Array.isArray(from) && Array.isArray(to)) {
    const shared = Math.min(from.length, to.length);
    return [
      ...from.slice(0, shared).flatMap((item, i) => diff(item, to[i], [...path, i])),
      ...from.slice(shared).map(() => ({ op: 'remove', path: pointer(shared) })),
      ...to.slice(shared).map((value, i) => ({ op: 'add', path: pointer(i % 2 === 0 ? '-' : shared + i), value })),
    ];
  }
  if (isRecord(from) && isRecord(to)) {
    const removed = Object.keys(from).filter((key) => !Object.hasOwn(to, key));
    return [
      ...removed.map((key) => ({ op: 'remove', path: pointer(key) })),
      ...Object.keys(to).flatMap((key) =>
        Object.hasOwn(from, key)
          ? diff(from[key], to[key], [...path, key])
          : [{ op: 'add', path: pointer(key), value: to[key] }],
      ),
    ];
  }
  return [{ op: 'replace', path: formatPointer(path), value: to }];
}

/** Freezes a document, so that any change to it throws. */
function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}

/** Copies own properties only, with the usual prototype: fast-check creates dictionaries without a prototype. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test('the patch from one document to another produces the other', () => {
  fc.assert(
    fc.property(json, json, (from, to) => {
      const patch = deepFreeze(diff(from, to));
      assert.deepEqual(plain(applyJsonPatch(deepFreeze(from), patch)), plain(to));
    }),
    { numRuns: 300 },
  );
});

test('a test of the document against itself passes', () => {
  fc.assert(
    fc.property(json, (doc) => {
      assert.equal(applyJsonPatch(doc, [{ op: 'test', path: '', value: plain(doc) }]), doc);
    }),
  );
});

const token = fc.oneof(keys, fc.constantFrom('__proto__', 'prototype', '-', '-1', '1', '01', 'a~'));
const pointer = fc.oneof(
  { weight: 5, arbitrary: fc.array(token, { maxLength: 3 }).map((tokens) => formatPointer(tokens)) },
  { weight: 1, arbitrary: fc.constantFrom('x', '//', '/~', null, 7) },
);
const operation = fc.record(
  {
    op: fc.constantFrom('add', 'remove', 'replace', 'move', 'copy', 'test', 'spam', '__proto__', 3),
    path: pointer,
    from: pointer,
    value: json,
  },
  { requiredKeys: [] },
);
const garbage = fc.oneof(
  { weight: 8, arbitrary: fc.array(operation, { maxLength: 6 }) },
  { weight: 1, arbitrary: json },
  { weight: 1, arbitrary: fc.array(json, { maxLength: 3 }) },
);

test('garbage throws only expected errors, changes no input and no prototype', () => {
  const prototypes = () =>
    JSON.stringify(
      [Object.prototype, Array.prototype, Function.prototype].map((it) => Reflect.ownKeys(it).map(String)),
    );
  const before = prototypes();
  let applied = 0;
  fc.assert(
    fc.property(json, garbage, (doc, patch) => {
      try {
        applyJsonPatch(deepFreeze(doc), deepFreeze(patch));
        applied++;
      } catch (error) {
        assert.ok(error instanceof JsonPatchError || error instanceof ApiError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
  assert.equal(prototypes(), before);
  assert.ok(applied > 20, `only ${applied} patches applied: too few to test anything`);
});
