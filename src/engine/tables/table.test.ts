import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gadgets } from '#engine/discovery/testing/sample-resource.ts';
import type { TableColumn, Resource } from '#engine/registry/resource.ts';
import { cellOf, parseIncludeObject, tableOf, type TableOptions } from '#engine/tables/table.ts';
import { partialMetadata, partialMetadataList } from '#engine/tables/partial-metadata.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject } from '#kube/meta.ts';

const now = Date.parse('2026-11-15T20:00:08Z');

const spec = (object: KubeObject) => object['spec'] as { size: number; note?: string };
const columns: TableColumn[] = [
  { name: 'Size', type: 'integer', description: 'how big', value: (object) => spec(object).size },
  { name: 'Note', type: 'string', priority: 1, value: (object) => spec(object).note },
  { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
];
const resource: Resource = { ...gadgets, columns };

const one: KubeObject = {
  apiVersion: 'golden.local/v1',
  kind: 'Gadget',
  metadata: { name: 'one', namespace: 'golden', resourceVersion: '282', creationTimestamp: '2026-11-15T20:00:00Z' },
  spec: { size: 3 },
};

const table = (objects: KubeObject[], options: Partial<TableOptions> = {}) =>
  tableOf(resource, objects, { now, includeObject: 'Metadata', listMeta: { resourceVersion: '282' }, ...options });

test('a table has the name first, then the columns, and metadata beside the cells', () => {
  const { columnDefinitions, ...rest } = table([one]);
  assert.deepEqual(rest, {
    kind: 'Table',
    apiVersion: 'meta.k8s.io/v1',
    metadata: { resourceVersion: '282' },
    rows: [
      {
        cells: ['one', 3, null, '8s'],
        object: { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: one.metadata },
      },
    ],
  });
  const [name, size, note, age] = columnDefinitions!;
  assert.deepEqual([name!.name, name!.type, name!.format, name!.priority], ['Name', 'string', 'name', 0]);
  assert.match(name!.description, /^Name must be unique within a namespace\. .*names#names$/);
  assert.deepEqual(size, { name: 'Size', type: 'integer', format: '', description: 'how big', priority: 0 });
  assert.deepEqual(note, { name: 'Note', type: 'string', format: '', description: '', priority: 1 });
  assert.equal(age!.type, 'date');
});

test('an empty table has all columns and no rows', () => {
  const empty = table([], { listMeta: { resourceVersion: '9', continue: 'token', remainingItemCount: 2 } });
  assert.deepEqual(empty.rows, []);
  assert.equal(empty.columnDefinitions!.length, 4);
  assert.deepEqual(empty.metadata, { resourceVersion: '9', continue: 'token', remainingItemCount: 2 });
});

test('later events of a watch have null for their columns', () => {
  assert.equal(table([one], { withColumns: false }).columnDefinitions, null);
});

test('the object beside the cells is whole, its metadata, or null', () => {
  const beside = (options: Partial<TableOptions>) => table([one], options).rows[0]!.object;
  assert.equal(beside({ includeObject: 'Object' }), one);
  assert.equal(beside({ includeObject: 'None' }), null);
  assert.equal(beside({ version: 'v1beta1' })!.apiVersion, 'meta.k8s.io/v1beta1');
  assert.equal(table([one], { version: 'v1beta1' }).apiVersion, 'meta.k8s.io/v1beta1');
});

test('a bookmark without name and content is a row of empty cells', () => {
  const bookmark = { apiVersion: 'golden.local/v1', kind: 'Gadget', metadata: { resourceVersion: '300' } };
  assert.deepEqual(table([bookmark]).rows[0]!.cells, ['', null, null, null]);
});

test('a kind that defines its own name column keeps its position', () => {
  const last: TableColumn = { name: 'Name', type: 'string', priority: 1, value: (object) => object.metadata.name };
  const event: Resource = { ...gadgets, columns: [columns[0]!, last] };
  const { columnDefinitions, rows } = tableOf(event, [one], {
    now,
    includeObject: 'None',
    listMeta: { resourceVersion: '1' },
  });
  assert.deepEqual(
    columnDefinitions!.map((column) => [column.name, column.format, column.priority]),
    [
      ['Size', '', 0],
      ['Name', 'name', 1],
    ],
  );
  assert.deepEqual(rows[0]!.cells, [3, 'one']);
});

const cells: Record<string, { type: TableColumn['type']; value: ReturnType<TableColumn['value']>; want: unknown }> = {
  'a missing value is null': { type: 'string', value: undefined, want: null },
  'an empty string stays': { type: 'string', value: '', want: '' },
  'a number in a string column is printed': { type: 'string', value: 1.5, want: '1.5' },
  'a boolean in a string column is printed': { type: 'string', value: true, want: 'true' },
  'a fraction in an integer column is truncated': { type: 'integer', value: 3.9, want: 3 },
  'text in an integer column is null': { type: 'integer', value: '3', want: null },
  'a number stays': { type: 'number', value: 0.5, want: 0.5 },
  'text in a boolean column is null': { type: 'boolean', value: 'true', want: null },
  'false stays': { type: 'boolean', value: false, want: false },
  'a date is shown as an age': { type: 'date', value: '2026-11-15T19:58:08Z', want: '2m' },
  'a date with fractions and zone is shown as an age': {
    type: 'date',
    value: '2026-11-15T21:00:00.500+01:00',
    want: '7s',
  },
  'a date in the future is invalid': { type: 'date', value: '2026-11-15T21:00:00Z', want: '<invalid>' },
  'an empty date is unknown': { type: 'date', value: '', want: '<unknown>' },
  'a null date is null': { type: 'date', value: null, want: null },
  'text that is not a date is invalid': { type: 'date', value: '15 November 2026', want: '<invalid>' },
  'a day that does not exist is invalid': { type: 'date', value: '2026-13-41T00:00:00Z', want: '<invalid>' },
};
for (const [name, { type, value, want }] of Object.entries(cells)) {
  test(`cell: ${name}`, () => assert.equal(cellOf({ name: 'X', type, value: () => value }, one, now), want));
}

test('includeObject defaults to metadata, and an invalid value is rejected', () => {
  assert.deepEqual([null, '', 'Object', 'None'].map(parseIncludeObject), ['Metadata', 'Metadata', 'Object', 'None']);
  assert.throws(
    () => parseIncludeObject('All'),
    (error) => error instanceof ApiError && error.code === 400,
  );
});

test('partial metadata contains only the metadata', () => {
  assert.deepEqual(partialMetadata(one), {
    kind: 'PartialObjectMetadata',
    apiVersion: 'meta.k8s.io/v1',
    metadata: one.metadata,
  });
  const list = partialMetadataList([one], { resourceVersion: '282' }, 'v1beta1');
  assert.deepEqual(list, {
    kind: 'PartialObjectMetadataList',
    apiVersion: 'meta.k8s.io/v1beta1',
    metadata: { resourceVersion: '282' },
    items: [{ kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1beta1', metadata: one.metadata }],
  });
});
