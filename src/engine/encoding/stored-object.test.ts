import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { KubeObject, ManagedFieldsEntry } from '#kube/meta.ts';
import { decodeStored, encodeStored, fieldsOfText, parseStored, storedText } from '#engine/encoding/stored-object.ts';

const entry = (more: ManagedFieldsEntry = {}): ManagedFieldsEntry => ({
  manager: 'm',
  operation: 'Update',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsType: 'FieldsV1',
  fieldsV1: { 'f:data': { '.': {}, 'f:a': {} } },
  ...more,
});

const object = (managedFields: ManagedFieldsEntry[] | undefined, more: Record<string, unknown> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', labels: { b: 'c' }, ...(managedFields && { managedFields }) },
  ...more,
});

const cases: Record<string, KubeObject> = {
  'no owners': object(undefined, { data: { a: 'b' } }),
  'one owner': object([entry()], { data: { a: 'b' } }),
  'several owners': object([entry(), entry({ manager: 'n', subresource: 'status' }), entry({ fieldsV1: {} })]),
  'an entry without a name or a time': object([entry({ manager: undefined, time: undefined })]),
  'items with quotes and brackets in their keys': object([
    entry({ fieldsV1: { 'f:l': { 'k:{"name":"}}],{\\"manager\\":"}': {}, 'v:"}}]"': {} } } }),
  ]),
  'a manager that looks like the end of managedFields': object([
    entry({ manager: '}}],"spec":{' }),
    entry({ manager: '}}]' }),
  ]),
  'a manager that looks like the next entry': object([entry({ manager: '},{"fieldsType":"FieldsV1","fieldsV1":' })]),
  'managedFields of a nested object': object(undefined, { spec: { metadata: { managedFields: [{ a: 1 }] } } }),
  'managedFields of the object and of a nested object': object([entry()], {
    spec: { metadata: { managedFields: [{ a: {} }] } },
  }),
  'a label of that name': { ...object([entry()]), metadata: { labels: { managedFields: '"managedFields":[' } } },
  'an annotation with an object in it': {
    ...object([entry()]),
    metadata: { annotations: { last: JSON.stringify(object([entry()])) }, managedFields: [entry()] },
  },
  'only owners': { apiVersion: 'v1', kind: 'X', metadata: { managedFields: [entry()] } },
  'text beyond ASCII': object([entry({ manager: 'münchen \u{1f600}' })], { data: { ü: '\u2028' } }),
};

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

for (const [what, stored] of Object.entries(cases)) {
  test(`${what}: reads what was written`, () => {
    const text = storedText(stored);
    assert.deepEqual(JSON.parse(text), plain(stored));
    assert.deepEqual(plain(parseStored(text)), plain(stored));
  });

  test(`${what}: reads any order of fields`, () => {
    const reversed = Object.fromEntries(Object.entries(stored).toReversed());
    assert.deepEqual(plain(parseStored(JSON.stringify(reversed))), plain(stored));
  });
}

test('objects share frozen field sets', () => {
  const [a, b] = [
    parseStored(storedText(object([entry()]))),
    parseStored(storedText(object([entry({ manager: 'n' })]))),
  ];
  const fields = a.metadata.managedFields![0]!.fieldsV1!;
  assert.equal(fields, b.metadata.managedFields![0]!.fieldsV1);
  assert.throws(() => (fields['f:x'] = {}), TypeError);
  assert.equal(fieldsOfText('{"f:data":{".":{},"f:a":{}}}'), fields);
});

test('invalid JSON is rejected', () => {
  assert.throws(() => parseStored('{"apiVersion":"v1","kind":"X","metadata":{"managedFields":[{}}'), SyntaxError);
});

test('stored bytes contain their revision', () => {
  const bytes = encodeStored({ apiVersion: 'v1', kind: 'A', metadata: { name: 'a' } }, 42);
  assert.equal(decodeStored(bytes).metadata.resourceVersion, '42');
});
