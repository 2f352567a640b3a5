import assert from 'node:assert/strict';
import test from 'node:test';
import * as fc from 'fast-check';
import { ApiError } from '#kube/api-error.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/json-patch.ts';
import { formatPointer } from '#kube/json-pointer.ts';
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

/** A patch from one document to another; not the shortest, but one that uses every way to edit. */
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

/** A frozen document cannot be changed without an error. */
function frozen<T>(value: T): T {
  if (typeof value === 'object' && value !== null) Object.values(Object.freeze(value)).forEach(frozen);
  return value;
}

/** Own properties only, and without regard to prototypes: fast-check makes dictionaries without any. */
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test('the patch from one document to another gives the other', () => {
  fc.assert(
    fc.property(json, json, (from, to) => {
      const patch = frozen(diff(from, to));
      assert.deepEqual(plain(applyJsonPatch(frozen(from), patch)), plain(to));
    }),
    { numRuns: 300 },
  );
});

test('a test of the document against itself holds', () => {
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

test('garbage throws nothing but its own errors, changes no input and reaches no prototype', () => {
  const prototypes = () =>
    JSON.stringify(
      [Object.prototype, Array.prototype, Function.prototype].map((it) => Reflect.ownKeys(it).map(String)),
    );
  const before = prototypes();
  let applied = 0;
  fc.assert(
    fc.property(json, garbage, (doc, patch) => {
      try {
        applyJsonPatch(frozen(doc), frozen(patch));
        applied++;
      } catch (error) {
        assert.ok(error instanceof JsonPatchError || error instanceof ApiError, String(error));
      }
    }),
    { numRuns: 2000 },
  );
  assert.equal(prototypes(), before);
  assert.ok(applied > 20, `only ${applied} patches applied: the garbage is too bad to test anything`);
});
