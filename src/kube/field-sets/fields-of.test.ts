import assert from 'node:assert/strict';
import test from 'node:test';
import type { Schema } from '#kube/schema.ts';
import { fieldsOf } from './fields-of.ts';
import { formatFieldsV1 } from './fields-v1.ts';
import { SAMPLE, spec } from './sample.fixture.ts';

const L = {};

const cases: Record<string, { value: unknown; want: Record<string, unknown>; schema?: Schema }> = {
  'scalars are leaves, and named maps are not owned themselves': {
    value: { kind: 'A', spec: { size: 1, on: true } },
    want: { 'f:kind': L, 'f:spec': { 'f:on': L, 'f:size': L } },
  },
  'entries of a free map are owned, the named map that holds them is not': {
    value: { labels: { b: '1', a: '2' } },
    want: { 'f:labels': { 'f:a': L, 'f:b': L } },
  },
  'an empty map and null are owned themselves': {
    value: { labels: {}, spec: { size: null, parts: null } },
    want: { 'f:labels': L, 'f:spec': { 'f:parts': L, 'f:size': L } },
  },
  'an empty list of items is not owned': {
    value: spec({ parts: [], tags: [], size: 1 }),
    want: { 'f:spec': { 'f:size': L } },
  },
  'atomic lists and maps are owned whole, empty ones too': {
    value: spec({ args: [], selector: { a: '1' } }),
    want: { 'f:spec': { 'f:args': L, 'f:selector': L } },
  },
  'items of a map list are owned with their fields, keys among them': {
    value: spec({ parts: [{ name: 'b', size: 1 }, { name: 'a' }] }),
    want: {
      'f:spec': {
        'f:parts': {
          'k:{"name":"a"}': { '.': L, 'f:name': L },
          'k:{"name":"b"}': { '.': L, 'f:name': L, 'f:size': L },
        },
      },
    },
  },
  'the default stands in for an absent key, which is not owned': {
    value: spec({ ports: [{ port: 80 }, { port: 80, protocol: 'UDP' }] }),
    want: {
      'f:spec': {
        'f:ports': {
          'k:{"port":80,"protocol":"TCP"}': { '.': L, 'f:port': L },
          'k:{"port":80,"protocol":"UDP"}': { '.': L, 'f:port': L, 'f:protocol': L },
        },
      },
    },
  },
  'items of sets are owned by value': {
    value: spec({ tags: ['b', 'a'], numbers: [10, 9, 1.5] }),
    want: { 'f:spec': { 'f:numbers': { 'v:1.5': L, 'v:9': L, 'v:10': L }, 'f:tags': { 'v:"a"': L, 'v:"b"': L } } },
  },
  'of doubles, only that they are there is owned': {
    value: spec({ parts: [{ name: 'a', size: 1 }, { name: 'a', size: 2 }, { name: 'a' }], tags: ['x', 'x'] }),
    want: { 'f:spec': { 'f:parts': { 'k:{"name":"a"}': L }, 'f:tags': { 'v:"x"': L } } },
  },
  'a set in a map list': {
    value: spec({ ports: [{ port: 1, tags: ['a'] }] }),
    want: {
      'f:spec': {
        'f:ports': { 'k:{"port":1,"protocol":"TCP"}': { '.': L, 'f:port': L, 'f:tags': { 'v:"a"': L } } },
      },
    },
  },
  'without a list type, the merge key of patches decides': {
    value: spec({ patched: [{ id: 'a', x: '1' }] }),
    want: { 'f:spec': { 'f:patched': { 'k:{"id":"a"}': { '.': L, 'f:id': L, 'f:x': L } } } },
  },
  'what no schema describes: maps by entry, each owned itself, lists whole': {
    value: spec({ parts: [{ name: 'a', free: { x: { y: [1], z: {} } } }] }),
    want: {
      'f:spec': {
        'f:parts': {
          'k:{"name":"a"}': { '.': L, 'f:free': { 'f:x': { '.': L, 'f:y': L, 'f:z': L } }, 'f:name': L },
        },
      },
    },
  },
  'unknown fields are kept by all that is below an open map': {
    value: spec({ open: { more: 1, inner: { known: 'x', extra: { a: 1 } } } }),
    want: { 'f:spec': { 'f:open': { 'f:inner': { 'f:extra': { '.': L, 'f:a': L }, 'f:known': L }, 'f:more': L } } },
  },
  'an embedded object has the metadata of every object': {
    value: spec({ template: { metadata: { labels: { a: 'b' } }, spec: {} } }),
    want: { 'f:spec': { 'f:template': { 'f:metadata': { 'f:labels': { 'f:a': L } }, 'f:spec': L } } },
  },
  'a number or a string is a leaf': {
    value: spec({ target: '50%', time: 'now' }),
    want: { 'f:spec': { 'f:target': L, 'f:time': L } },
  },
  'undefined is absent': { value: { kind: undefined, spec: { size: 1 } }, want: { 'f:spec': { 'f:size': L } } },
  'a field that the schema does not know is owned as if it had none': {
    value: { other: { a: 1 } },
    want: { 'f:other': { '.': L, 'f:a': L } },
  },
  'names of object members mean nothing': {
    value: { labels: { constructor: 'x' } },
    want: { 'f:labels': { 'f:constructor': L } },
  },
  'nobody owns the root, atomic as it may be': {
    value: { a: 1 },
    schema: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
    want: {},
  },
  'nor a root that is a scalar': { value: 'x', schema: { type: 'string' }, want: {} },
  'a map where a list is expected is not owned': {
    value: spec({ tags: { a: 1 }, size: 1 }),
    want: { 'f:spec': { 'f:size': L } },
  },
};

for (const [sentence, { value, want, schema }] of Object.entries(cases)) {
  test(sentence, () =>
    assert.equal(JSON.stringify(formatFieldsV1(fieldsOf(value, schema ?? SAMPLE))), JSON.stringify(want)),
  );
}

test('a schema that holds itself is walked as deep as the value goes', () => {
  const tree: Schema = { type: 'object', properties: { leaf: { type: 'string' } } };
  tree.properties!['next'] = tree;
  assert.deepEqual(formatFieldsV1(fieldsOf({ next: { next: { leaf: 'x' } } }, tree)), {
    'f:next': { 'f:next': { 'f:leaf': {} } },
  });
});
