import assert from 'node:assert/strict';
import test from 'node:test';
import { parseFieldsV1 } from './fields-v1.ts';
import { removeFields } from './remove-fields.ts';
import { SAMPLE, spec } from './testing/sample-set.ts';

const L = {};

const cases: Record<string, { value: unknown; removed: Record<string, unknown>; want: unknown }> = {
  'removes a field': {
    value: spec({ size: 1, on: true }),
    removed: { 'f:spec': { 'f:size': L } },
    want: spec({ on: true }),
  },
  'removes a member with everything in it': {
    value: { kind: 'A', spec: { size: 1, on: true } },
    removed: { 'f:spec': { '.': L, 'f:size': L } },
    want: { kind: 'A' },
  },
  'removes items of a map list and keeps the order of the others': {
    value: spec({ parts: [{ name: 'c' }, { name: 'b', size: 1 }, { name: 'a' }] }),
    removed: { 'f:spec': { 'f:parts': { 'k:{"name":"b"}': L } } },
    want: spec({ parts: [{ name: 'c' }, { name: 'a' }] }),
  },
  'removes fields of an item': {
    value: spec({
      parts: [
        { name: 'b', size: 1 },
        { name: 'a', size: 1 },
      ],
    }),
    removed: { 'f:spec': { 'f:parts': { 'k:{"name":"b"}': { 'f:size': L } } } },
    want: spec({ parts: [{ name: 'b' }, { name: 'a', size: 1 }] }),
  },
  'finds an item by the default of its key': {
    value: spec({ ports: [{ port: 80 }, { port: 81 }] }),
    removed: { 'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': L } } },
    want: spec({ ports: [{ port: 81 }] }),
  },
  'removes items of sets, including duplicates': {
    value: spec({ tags: ['a', 'b', 'a'], numbers: [1, 2] }),
    removed: { 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:numbers': { 'v:2': L } } },
    want: spec({ tags: ['b'], numbers: [1] }),
  },
  'removes a list that lost its last item': {
    value: spec({ size: 1, tags: ['a'], parts: [{ name: 'a', size: 1 }] }),
    removed: { 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:parts': { 'k:{"name":"a"}': { 'f:name': L, 'f:size': L } } } },
    want: spec({ size: 1 }),
  },
  'removes a map that lost its last entry, but not the root': {
    value: { labels: { a: 'b' } },
    removed: { 'f:labels': { 'f:a': L } },
    want: {},
  },
  'keeps what was empty before': {
    value: { labels: {}, spec: { tags: [], parts: null } },
    removed: { 'f:labels': { 'f:a': L }, 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:parts': { 'k:{"name":"a"}': L } } },
    want: { labels: {}, spec: { tags: [], parts: null } },
  },
  'removes an atomic value for a path inside it': {
    value: spec({ size: 1, args: ['a', 'b'], selector: { a: '1' } }),
    removed: { 'f:spec': { 'f:args': { 'i:0': L }, 'f:selector': { 'f:a': L } } },
    want: spec({ size: 1 }),
  },
  'ignores a path inside a scalar': {
    value: spec({ size: 1 }),
    removed: { 'f:spec': { 'f:size': { 'f:a': L } } },
    want: spec({ size: 1 }),
  },
  'ignores absent fields': {
    value: spec({ size: 1 }),
    removed: { 'f:spec': { 'f:on': L }, 'f:x': L },
    want: spec({ size: 1 }),
  },
  'removes nothing for an empty set': { value: spec({ size: 1 }), removed: {}, want: spec({ size: 1 }) },
  'removes unknown fields': {
    value: { other: { a: 1, b: 2 } },
    removed: { 'f:other': { 'f:a': L } },
    want: { other: { b: 2 } },
  },
};

for (const [sentence, { value, removed, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const before = structuredClone(value);
    assert.deepEqual(removeFields(value, parseFieldsV1(removed), SAMPLE), want);
    assert.deepEqual(value, before);
  });
}
