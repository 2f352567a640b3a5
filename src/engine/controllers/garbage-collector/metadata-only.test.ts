import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readMetadata } from '#engine/controllers/garbage-collector/metadata-only.ts';

const head = { apiVersion: 'v1', kind: 'Pod' };
const metadata = {
  name: 'a',
  uid: 'u',
  annotations: { text: ',"managedFields":[', managedFields: 'x' },
  ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n', uid: 'o' }],
};
const managedFields = [{ manager: 'm', operation: 'Update' }];

const lines: Record<string, { object: object; isCut: boolean }> = {
  'with managedFields at the end of its metadata': {
    object: { ...head, metadata: { ...metadata, managedFields }, spec: { a: 1 } },
    isCut: true,
  },
  'without managedFields': { object: { ...head, metadata, spec: { a: 1 } }, isCut: false },
  'without managedFields, whose spec contains some': {
    object: { ...head, metadata, spec: { a: 1, managedFields: [1], b: 2 } },
    isCut: true,
  },
  'without managedFields, whose spec contains some at a deeper level': {
    object: { ...head, metadata, spec: { list: [{ a: 1, managedFields: [1] }] } },
    isCut: false,
  },
  'with managedFields before its metadata': {
    object: { ...head, status: { a: 1, managedFields: [] }, metadata },
    isCut: false,
  },
  'that begins with its kind': {
    object: { kind: 'Pod', apiVersion: 'v1', metadata: { ...metadata, managedFields } },
    isCut: false,
  },
};
for (const [title, { object, isCut }] of Object.entries(lines)) {
  test(`metadata of an object ${title}`, () => {
    const event = { type: 'ADDED', object };
    const read = readMetadata(JSON.stringify(event)) as { type: string; object: { metadata: object } };
    const { managedFields: _, ...others } = read.object.metadata as Record<string, unknown>;
    assert.equal(read.type, 'ADDED');
    assert.deepEqual(others, metadata);
    if (isCut) assert.notDeepEqual(read, event);
    else assert.deepEqual(read, event);
  });
}

test('rejects invalid JSON', () => {
  assert.throws(() => readMetadata('{"type":"ADDED","object":'), SyntaxError);
});
