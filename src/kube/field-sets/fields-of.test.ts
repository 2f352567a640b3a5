import assert from 'node:assert/strict';
import test from 'node:test';
import type { Schema } from '#kube/schema.ts';
import { fieldsOf } from './fields-of.ts';
import { formatFieldsV1 } from './fields-v1.ts';
import { SAMPLE, spec } from './testing/sample-set.ts';

const L = {};

const cases: Record<string, { value: unknown; want: Record<string, unknown>; schema?: Schema }> = {
  'owns scalars, but not the named maps that contain them': {
    value: { kind: 'A', spec: { size: 1, on: true } },
    want: { 'f:kind': L, 'f:spec': { 'f:on': L, 'f:size': L } },
  },
  'owns entries of a free map, but not the named map that contains them': {
    value: { labels: { b: '1', a: '2' } },
    want: { 'f:labels': { 'f:a': L, 'f:b': L } },
  },
  'owns an empty map and null': {
    value: { labels: {}, spec: { size: null, parts: null } },
    want: { 'f:labels': L, 'f:spec': { 'f:parts': L, 'f:size': L } },
  },
  'does not own an empty list of items': {
    value: spec({ parts: [], tags: [], size: 1 }),
    want: { 'f:spec': { 'f:size': L } },
  },
  'owns atomic lists and maps as a whole, also empty ones': {
    value: spec({ args: [], selector: { a: '1' } }),
    want: { 'f:spec': { 'f:args': L, 'f:selector': L } },
  },
  'owns items of a map list with their fields, including keys': {
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
  'uses the default of an absent key, but does not own it': {
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
  'owns items of sets by value': {
    value: spec({ tags: ['b', 'a'], numbers: [10, 9, 1.5] }),
    want: { 'f:spec': { 'f:numbers': { 'v:1.5': L, 'v:9': L, 'v:10': L }, 'f:tags': { 'v:"a"': L, 'v:"b"': L } } },
  },
  'owns duplicates as one item without fields': {
    value: spec({ parts: [{ name: 'a', size: 1 }, { name: 'a', size: 2 }, { name: 'a' }], tags: ['x', 'x'] }),
    want: { 'f:spec': { 'f:parts': { 'k:{"name":"a"}': L }, 'f:tags': { 'v:"x"': L } } },
  },
  'owns items of a set in a map list': {
    value: spec({ ports: [{ port: 1, tags: ['a'] }] }),
    want: {
      'f:spec': {
        'f:ports': { 'k:{"port":1,"protocol":"TCP"}': { '.': L, 'f:port': L, 'f:tags': { 'v:"a"': L } } },
      },
    },
  },
  'uses the merge key of patches for a list without a list type': {
    value: spec({ patched: [{ id: 'a', x: '1' }] }),
    want: { 'f:spec': { 'f:patched': { 'k:{"id":"a"}': { '.': L, 'f:id': L, 'f:x': L } } } },
  },
  'owns maps without a schema by entry and lists without a schema as a whole': {
    value: spec({ parts: [{ name: 'a', free: { x: { y: [1], z: {} } } }] }),
    want: {
      'f:spec': {
        'f:parts': {
          'k:{"name":"a"}': { '.': L, 'f:free': { 'f:x': { '.': L, 'f:y': L, 'f:z': L } }, 'f:name': L },
        },
      },
    },
  },
  'owns unknown fields everywhere below an open map': {
    value: spec({ open: { more: 1, inner: { known: 'x', extra: { a: 1 } } } }),
    want: { 'f:spec': { 'f:open': { 'f:inner': { 'f:extra': { '.': L, 'f:a': L }, 'f:known': L }, 'f:more': L } } },
  },
  'knows the metadata of an embedded object': {
    value: spec({ template: { metadata: { labels: { a: 'b' } }, spec: {} } }),
    want: { 'f:spec': { 'f:template': { 'f:metadata': { 'f:labels': { 'f:a': L } }, 'f:spec': L } } },
  },
  'owns an int-or-string and a time as scalars': {
    value: spec({ target: '50%', time: 'now' }),
    want: { 'f:spec': { 'f:target': L, 'f:time': L } },
  },
  'treats undefined as absent': { value: { kind: undefined, spec: { size: 1 } }, want: { 'f:spec': { 'f:size': L } } },
  'owns a field that the schema does not have like one without a schema': {
    value: { other: { a: 1 } },
    want: { 'f:other': { '.': L, 'f:a': L } },
  },
  'treats names of Object.prototype as ordinary names': {
    value: { labels: { constructor: 'x' } },
    want: { 'f:labels': { 'f:constructor': L } },
  },
  'never owns the root, even if it is atomic': {
    value: { a: 1 },
    schema: { type: 'object', 'x-kubernetes-map-type': 'atomic' },
    want: {},
  },
  'never owns a root that is a scalar': { value: 'x', schema: { type: 'string' }, want: {} },
  'does not own a map in place of a list': {
    value: spec({ tags: { a: 1 }, size: 1 }),
    want: { 'f:spec': { 'f:size': L } },
  },
};

for (const [sentence, { value, want, schema }] of Object.entries(cases)) {
  test(sentence, () =>
    assert.equal(JSON.stringify(formatFieldsV1(fieldsOf(value, schema ?? SAMPLE))), JSON.stringify(want)),
  );
}

test('traverses a recursive schema as deep as the value', () => {
  const tree: Schema = { type: 'object', properties: { leaf: { type: 'string' } } };
  tree.properties!['next'] = tree;
  assert.deepEqual(formatFieldsV1(fieldsOf({ next: { next: { leaf: 'x' } } }, tree)), {
    'f:next': { 'f:next': { 'f:leaf': {} } },
  });
});
