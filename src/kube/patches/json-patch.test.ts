import assert from 'node:assert/strict';
import test from 'node:test';
import { isApiError } from '#kube/api-error.ts';
import { applyJsonPatch, JsonPatchError } from '#kube/patches/json-patch.ts';

interface Case {
  doc: unknown;
  patch: unknown;
  want: unknown;
}

/** Numbered as in appendix A of RFC 6902; the others show where Kubernetes is more lenient. */
const good: Record<string, Case> = {
  'A.1 adds a member to an object': {
    doc: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux' }],
    want: { baz: 'qux', foo: 'bar' },
  },
  'A.2 adds an element in front of an index': {
    doc: { foo: ['bar', 'baz'] },
    patch: [{ op: 'add', path: '/foo/1', value: 'qux' }],
    want: { foo: ['bar', 'qux', 'baz'] },
  },
  'A.3 removes a member': {
    doc: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'remove', path: '/baz' }],
    want: { foo: 'bar' },
  },
  'A.4 removes an element': {
    doc: { foo: ['bar', 'qux', 'baz'] },
    patch: [{ op: 'remove', path: '/foo/1' }],
    want: { foo: ['bar', 'baz'] },
  },
  'A.5 replaces a value': {
    doc: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'replace', path: '/baz', value: 'boo' }],
    want: { baz: 'boo', foo: 'bar' },
  },
  'A.6 moves a value': {
    doc: { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    patch: [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    want: { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  },
  'A.7 moves an element': {
    doc: { foo: ['all', 'grass', 'cows', 'eat'] },
    patch: [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    want: { foo: ['all', 'cows', 'eat', 'grass'] },
  },
  'A.8 tests values': {
    doc: { baz: 'qux', foo: ['a', 2, 'c'] },
    patch: [
      { op: 'test', path: '/baz', value: 'qux' },
      { op: 'test', path: '/foo/1', value: 2 },
    ],
    want: { baz: 'qux', foo: ['a', 2, 'c'] },
  },
  'A.10 adds a nested object': {
    doc: { foo: 'bar' },
    patch: [{ op: 'add', path: '/child', value: { grandchild: {} } }],
    want: { foo: 'bar', child: { grandchild: {} } },
  },
  'A.11 ignores unknown members of an operation': {
    doc: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }],
    want: { foo: 'bar', baz: 'qux' },
  },
  'A.14 decodes ~01 to ~1, not to a slash': {
    doc: { '/': 9, '~1': 10 },
    patch: [{ op: 'test', path: '/~01', value: 10 }],
    want: { '/': 9, '~1': 10 },
  },
  'A.16 appends an array as one element': {
    doc: { foo: ['bar'] },
    patch: [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
    want: { foo: ['bar', ['abc', 'def']] },
  },
  'adds over an existing member': {
    doc: { a: 1 },
    patch: [{ op: 'add', path: '/a', value: null }],
    want: { a: null },
  },
  'adds at the end by index': { doc: [1], patch: [{ op: 'add', path: '/1', value: 2 }], want: [1, 2] },
  'replaces the whole document': { doc: { a: 1 }, patch: [{ op: 'replace', path: '', value: [1] }], want: [1] },
  'copies a value, and later edits of the copy do not change the original': {
    doc: { a: { b: [1] } },
    patch: [
      { op: 'copy', from: '/a', path: '/c' },
      { op: 'add', path: '/c/b/-', value: 2 },
      { op: 'add', path: '/a/b/0', value: 0 },
    ],
    want: { a: { b: [0, 1] }, c: { b: [1, 2] } },
  },
  'moves a value to its own position': {
    doc: [1, 2, 3],
    patch: [{ op: 'move', from: '/1', path: '/1' }],
    want: [1, 2, 3],
  },
  'reads ~1 as a slash': {
    doc: { metadata: { labels: { 'a/b': '1' } } },
    patch: [{ op: 'remove', path: '/metadata/labels/a~1b' }],
    want: { metadata: { labels: {} } },
  },
  'tests objects regardless of the order of keys': {
    doc: { a: { x: 1, y: [{}] } },
    patch: [{ op: 'test', path: '/a', value: { y: [{}], x: 1 } }],
    want: { a: { x: 1, y: [{}] } },
  },
  'Kubernetes: replace adds an absent key': {
    doc: {},
    patch: [{ op: 'replace', path: '/a', value: 1 }],
    want: { a: 1 },
  },
  'Kubernetes: an absent key passes a test for null': {
    doc: {},
    patch: [{ op: 'test', path: '/a', value: null }],
    want: {},
  },
  'Kubernetes: an index may count from the end': {
    doc: [1, 2, 3],
    patch: [
      { op: 'remove', path: '/-1' },
      { op: 'add', path: '/-1', value: 9 },
      { op: 'replace', path: '/-3', value: 0 },
    ],
    want: [0, 2, 9],
  },
  'Kubernetes: a patch of null is an empty patch': { doc: { a: 1 }, patch: null, want: { a: 1 } },
  'treats names of Object.prototype as plain keys': {
    doc: {},
    patch: [
      { op: 'add', path: '/constructor', value: {} },
      { op: 'add', path: '/constructor/prototype', value: 1 },
    ],
    want: { constructor: { prototype: 1 } },
  },
};

for (const [sentence, { doc, patch, want }] of Object.entries(good)) {
  test(sentence, () => {
    const before = JSON.stringify([doc, patch]);
    assert.deepEqual(applyJsonPatch(doc, patch), want);
    assert.equal(JSON.stringify([doc, patch]), before, 'the inputs are not changed');
  });
}

const LABELS = { metadata: { labels: { a: '1' } }, list: [1, 2], objects: [{}, {}] };

const failing: Record<string, [unknown, string]> = {
  'A.9 a test with another value': [
    { op: 'test', path: '/metadata/labels/a', value: '2' },
    'testing value /metadata/labels/a failed: test failed',
  ],
  'A.12 an add below an absent key': [
    { op: 'add', path: '/none/b', value: 1 },
    'add operation does not apply: doc is missing path: "/none/b": missing value',
  ],
  'A.15 a test of a number against its text': [
    { op: 'test', path: '/list/0', value: '1' },
    'testing value /list/0 failed: test failed',
  ],
  'removing an absent key': [
    { op: 'remove', path: '/metadata/none' },
    "error in remove for path: '/metadata/none': Unable to remove nonexistent key: none: missing value",
  ],
  'removing the document': [
    { op: 'remove', path: '' },
    'remove operation does not apply: doc is missing path: "": missing value',
  ],
  'an index beyond the end': [
    { op: 'add', path: '/list/3', value: 1 },
    "error in add for path: '/list/3': Unable to access invalid index: 3: invalid index referenced",
  ],
  'an index too far from the end': [
    { op: 'remove', path: '/list/-3' },
    "error in remove for path: '/list/-3': Unable to access invalid index: -3: invalid index referenced",
  ],
  'an index that is not a number': [
    { op: 'add', path: '/list/x', value: 1 },
    `error in add for path: '/list/x': value was not a proper array index: 'x': strconv.Atoi: parsing "x": invalid syntax`,
  ],
  'an index with a leading zero': [
    { op: 'remove', path: '/list/00' },
    `error in remove for path: '/list/00': strconv.Atoi: parsing "00": invalid syntax`,
  ],
  'replacing beyond the end': [
    { op: 'replace', path: '/list/2', value: 1 },
    'replace operation does not apply: doc is missing key: /list/2: missing value',
  ],
  'a path through a scalar': [
    { op: 'add', path: '/list/0/x', value: 1 },
    'add operation does not apply: doc is missing path: "/list/0/x": missing value',
  ],
  'a pointer without its slash': [
    { op: 'add', path: 'list', value: 1 },
    'add operation does not apply: doc is missing path: "list": missing value',
  ],
  'a move into itself': [
    { op: 'move', from: '/metadata', path: '/metadata/labels/x' },
    'move operation does not apply: doc is missing destination path: /metadata/labels/x: missing value',
  ],
  'a move into itself, where the next element would take its position': [
    { op: 'move', from: '/objects/0', path: '/objects/0/x' },
    'move operation does not apply: doc is missing destination path: /objects/0/x: missing value',
  ],
  'a move of an absent value': [
    { op: 'move', from: '/none', path: '/a' },
    "error in move for path: 'none': Unable to remove nonexistent key: none: missing value",
  ],
  'a copy of an absent value': [
    { op: 'copy', from: '/none', path: '/a' },
    'copy operation does not apply: doc is missing from path: /none: missing value',
  ],
  'an operation without a path': [{ op: 'add', value: 1 }, 'add operation failed to decode path: missing value'],
  'a copy without a source': [
    { op: 'copy', path: '/a' },
    'copy operation failed to decode from: operation, missing from field: missing value',
  ],
  'an unknown operation': [{ op: 'spam', path: '/a' }, 'Unexpected kind: spam'],
  'a missing operation': [{ path: '/a' }, 'Unexpected kind: unknown'],
  'an operation named like a method': [{ op: 'constructor', path: '/a' }, 'Unexpected kind: constructor'],
  'the prototype as a key': [
    { op: 'add', path: '/__proto__', value: {} },
    'add operation does not apply: doc is missing path: "/__proto__": missing value',
  ],
  'the prototype inside the path': [
    { op: 'add', path: '/metadata/__proto__/evil', value: 1 },
    'add operation does not apply: doc is missing path: "/metadata/__proto__/evil": missing value',
  ],
  'an inherited member inside the path': [
    { op: 'add', path: '/constructor/evil', value: 1 },
    'add operation does not apply: doc is missing path: "/constructor/evil": missing value',
  ],
};

for (const [sentence, [operation, message]] of Object.entries(failing)) {
  test(`fails: ${sentence}`, () => {
    const patch = [{ op: 'add', path: '/metadata/labels/b', value: '2' }, operation];
    const before = JSON.stringify(LABELS);
    assert.throws(() => applyJsonPatch(LABELS, patch), { name: 'JsonPatchError', kind: 'failed', message });
    assert.equal(JSON.stringify(LABELS), before, 'nothing is applied');
  });
}

const malformed: [unknown, string][] = [
  [{ op: 'remove' }, 'object into Go value of type []handlers.jsonPatchOp'],
  ['x', 'string into Go value of type []handlers.jsonPatchOp'],
  [true, 'bool into Go value of type []handlers.jsonPatchOp'],
  [['x'], 'string into Go value of type handlers.jsonPatchOp'],
  [[[]], 'array into Go value of type handlers.jsonPatchOp'],
  [[{ op: 1 }], 'number into Go struct field jsonPatchOp.op of type string'],
  [[{ op: 'add', path: {} }], 'object into Go struct field jsonPatchOp.path of type string'],
];

for (const [patch, what] of malformed) {
  test(`malformed: ${JSON.stringify(patch)}`, () => {
    const message = `error decoding patch: json: cannot unmarshal ${what}`;
    assert.throws(() => applyJsonPatch({}, patch), { kind: 'malformed', message });
  });
}

test('shares untouched parts with the input and copies the others', () => {
  const doc = { a: { x: 1 }, b: { c: { y: 1 }, d: {} } };
  const result = applyJsonPatch(doc, [{ op: 'add', path: '/b/c/z', value: 2 }]) as typeof doc;
  assert.equal(result.a, doc.a);
  assert.equal(result.b.d, doc.b.d);
  assert.notEqual(result.b.c, doc.b.c);
  assert.deepEqual(doc, { a: { x: 1 }, b: { c: { y: 1 }, d: {} } });
});

test('refuses more than 10000 operations with a 413', () => {
  const patch = Array.from({ length: 10_001 }, () => ({ op: 'test', path: '', value: {} }));
  assert.throws(
    () => applyJsonPatch({}, patch),
    (error: Error) =>
      isApiError(error, 'RequestEntityTooLarge') &&
      error.message === 'The allowed maximum operations in a JSON patch is 10000, got 10001',
  );
  assert.deepEqual(applyJsonPatch({}, patch.slice(1)), {});
});

const hostile: Record<string, { doc: unknown; patch: unknown[]; message: RegExp }> = {
  'copies that double the document each time': {
    doc: { a: ['x'.repeat(100)] },
    patch: Array.from({ length: 100 }, () => ({ op: 'copy', from: '/a', path: '/a/-' })),
    message: /^Unable to complete the copy, the accumulated size increase of copy is \d+, exceeding the limit 3145728$/,
  },
  'moves that nest ever deeper': {
    doc: { a: {} },
    patch: Array.from({ length: 2000 }, () => [
      { op: 'add', path: '/b', value: {} },
      { op: 'move', from: '/a', path: '/b/a' },
      { op: 'move', from: '/b', path: '/a' },
    ]).flat(),
    message: /nested deeper than 500$/,
  },
  'inserts at the head of a huge list': {
    doc: Array.from({ length: 100_000 }, () => 0),
    patch: Array.from({ length: 10_000 }, () => ({ op: 'add', path: '/0', value: 0 })),
    message: /needs too much work$/,
  },
};

for (const [sentence, { doc, patch, message }] of Object.entries(hostile)) {
  test(`bounded: ${sentence}`, () => {
    assert.throws(
      () => applyJsonPatch(doc, patch),
      (error) => error instanceof JsonPatchError && error.kind === 'failed' && message.test(error.message),
    );
  });
}
