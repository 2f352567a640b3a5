import assert from 'node:assert/strict';
import test from 'node:test';
import { describePaths } from './describe-paths.ts';
import { hasSameFields } from './field-set.ts';
import { FieldSetError, formatFieldsV1, parseFieldsV1 } from './fields-v1.ts';

const L = {};

/** Input of a client, and its canonical form as text, whose order matters. */
const canonical: Record<string, { json: unknown; want: string }> = {
  'an empty set': { json: {}, want: '{}' },
  'null is an empty set': { json: null, want: '{}' },
  'a dot makes a path with children a member': {
    json: { 'f:a': { '.': L, 'f:b': L } },
    want: '{"f:a":{".":{},"f:b":{}}}',
  },
  'a path without children is a member without a dot': { json: { 'f:a': { '.': L } }, want: '{"f:a":{}}' },
  'the value of a dot is ignored': {
    json: { 'f:a': { '.': 'x', 'f:b': null } },
    want: '{"f:a":{".":{},"f:b":{}}}',
  },
  'the root is never a member': { json: { '.': L, 'f:a': L }, want: '{"f:a":{}}' },
  'unknown kinds of elements are removed with everything below': {
    json: { 'q:new': { 'f:b': L }, 'f:a': { 'z:c': L } },
    want: '{"f:a":{}}',
  },
  'fields come before keys, values and indexes': {
    json: { 'i:0': L, 'v:1': L, 'k:{"a":1}': L, 'f:z': L },
    want: String.raw`{"f:z":{},"k:{\"a\":1}":{},"v:1":{},"i:0":{}}`,
  },
  'fields are sorted by bytes': {
    json: { 'f:b': L, 'f:a': L, 'f:B': L, 'f:': L },
    want: '{"f:":{},"f:B":{},"f:a":{},"f:b":{}}',
  },
  'fields are sorted by bytes of UTF-8, not of UTF-16': {
    json: { 'f:\u{1f600}': L, 'f:\uffee': L },
    want: '{"f:\uffee":{},"f:\u{1f600}":{}}',
  },
  'indexes are sorted by number': { json: { 'i:10': L, 'i:9': L, 'i:+1': L }, want: '{"i:1":{},"i:9":{},"i:10":{}}' },
  'numbers are sorted by value': {
    json: { 'v:10': L, 'v:9': L, 'v:1.50': L },
    want: '{"v:1.5":{},"v:9":{},"v:10":{}}',
  },
  'values are sorted by type: numbers, strings, booleans, lists, maps, null': {
    json: { 'v:null': L, 'v:{"a":1}': L, 'v:[1]': L, 'v:true': L, 'v:false': L, 'v:"a"': L, 'v:1': L },
    want: String.raw`{"v:1":{},"v:\"a\"":{},"v:false":{},"v:true":{},"v:[1]":{},"v:{\"a\":1}":{},"v:null":{}}`,
  },
  'a string comes before those that start with it, also with characters below the quote': {
    json: { 'v:"a !"': L, 'v:"a"': L, 'v:"a b"': L },
    want: String.raw`{"v:\"a\"":{},"v:\"a !\"":{},"v:\"a b\"":{}}`,
  },
  'keys are sorted by their first field, then by the next': {
    json: { 'k:{"a":"x","b":2}': L, 'k:{"a":"x","b":10}': L, 'k:{"a":"w","b":9}': L },
    want: String.raw`{"k:{\"a\":\"w\",\"b\":9}":{},"k:{\"a\":\"x\",\"b\":2}":{},"k:{\"a\":\"x\",\"b\":10}":{}}`,
  },
  'a key has sorted fields and no spaces': {
    json: { 'k:{"port": 80.0, "name": "a"}': L },
    want: String.raw`{"k:{\"name\":\"a\",\"port\":80}":{}}`,
  },
  'two spellings of an element are one element': {
    json: { 'k:{"a":1}': { 'f:x': L }, 'k:{"a":1.0}': { 'f:y': L } },
    want: String.raw`{"k:{\"a\":1}":{"f:x":{},"f:y":{}}}`,
  },
  'strings are escaped as by Go': {
    json: { 'v:"<a&b>\\u2028\\b\\f\\n\\\\b\\""': L },
    want: JSON.stringify({ 'v:"\\u003ca\\u0026b\\u003e\\u2028\\u0008\\u000c\\n\\\\b\\""': {} }),
  },
  'a field may have any name': { json: { 'f:a:b': L, 'f:__proto__': L }, want: '{"f:__proto__":{},"f:a:b":{}}' },
};

for (const [sentence, { json, want }] of Object.entries(canonical)) {
  test(`canonical: ${sentence}`, () => {
    const set = parseFieldsV1(json);
    assert.equal(JSON.stringify(formatFieldsV1(set)), want);
    assert.ok(hasSameFields(parseFieldsV1(JSON.parse(want)), set));
  });
}

const refused: Record<string, { json: unknown; want: RegExp }> = {
  'a key that is too short': { json: { f: L }, want: /^parsing key as path element: key must be 2 characters long:$/ },
  'a key without a colon': { json: { 'f:a': { spec: L } }, want: /^parsing key as path element: missing colon: spec$/ },
  'a broken key': { json: { 'k:{"a"': L }, want: /^parsing key as path element: invalid JSON in "k:/ },
  'a key that is not a map': {
    json: { 'k:3': L },
    want: /^parsing key as path element: ReadObjectCB: expect \{ or n, but found 3$/,
  },
  'an index that is not a number': {
    json: { 'i:x': L },
    want: /^parsing key as path element: strconv\.Atoi: parsing "x": invalid syntax$/,
  },
  'a value that is not a map': { json: { 'f:a': 'x' }, want: /^ReadMapCB: expect \{ or n, but found "$/ },
  'a list as the set': { json: [], want: /^ReadMapCB: expect \{ or n, but found \[$/ },
  'an element that is nested too deeply': {
    json: { [`v:${'['.repeat(200_000)}${']'.repeat(200_000)}`]: L },
    want: /exceeded max depth$/,
  },
};

for (const [sentence, { json, want }] of Object.entries(refused)) {
  test(`refuses ${sentence}`, () => {
    assert.throws(
      () => parseFieldsV1(json),
      (error) => error instanceof FieldSetError && want.test(error.message),
    );
  });
}

test('describes paths for users, the members of a node before those below', () => {
  const set = parseFieldsV1({
    'f:spec': {
      'f:containers': { 'k:{"name":"web"}': { '.': L, 'f:image': L } },
      'f:ports': { 'k:{"port":80,"protocol":"TCP"}': L },
      'f:size': L,
      'f:tags': { 'v:"a\\"b"': L, 'v:3': L, 'v:true': L, 'v:null': L },
      'f:args': { 'i:2': L },
    },
    'f:zone': L,
  });
  assert.deepEqual(describePaths(set), [
    '.zone',
    '.spec.size',
    '.spec.args[2]',
    '.spec.containers[name="web"]',
    '.spec.containers[name="web"].image',
    '.spec.ports[port=80,protocol="TCP"]',
    '.spec.tags[=3]',
    String.raw`.spec.tags[="a\"b"]`,
    '.spec.tags[=true]',
    '.spec.tags[=null]',
  ]);
});
