import assert from 'node:assert/strict';
import test from 'node:test';
import { parseFieldsV1 } from './fields-v1.ts';
import { removeFields } from './remove-fields.ts';
import { SAMPLE, spec } from './sample.fixture.ts';

const L = {};

const cases: Record<string, { value: unknown; gone: Record<string, unknown>; want: unknown }> = {
  'a field goes': { value: spec({ size: 1, on: true }), gone: { 'f:spec': { 'f:size': L } }, want: spec({ on: true }) },
  'a member goes with all that it holds': {
    value: { kind: 'A', spec: { size: 1, on: true } },
    gone: { 'f:spec': { '.': L, 'f:size': L } },
    want: { kind: 'A' },
  },
  'items of a map list go, others stay in order': {
    value: spec({ parts: [{ name: 'c' }, { name: 'b', size: 1 }, { name: 'a' }] }),
    gone: { 'f:spec': { 'f:parts': { 'k:{"name":"b"}': L } } },
    want: spec({ parts: [{ name: 'c' }, { name: 'a' }] }),
  },
  'fields of an item go': {
    value: spec({
      parts: [
        { name: 'b', size: 1 },
        { name: 'a', size: 1 },
      ],
    }),
    gone: { 'f:spec': { 'f:parts': { 'k:{"name":"b"}': { 'f:size': L } } } },
    want: spec({ parts: [{ name: 'b' }, { name: 'a', size: 1 }] }),
  },
  'an item is found by the default of its key': {
    value: spec({ ports: [{ port: 80 }, { port: 81 }] }),
    gone: { 'f:spec': { 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': L } } },
    want: spec({ ports: [{ port: 81 }] }),
  },
  'items of sets go, doubles all': {
    value: spec({ tags: ['a', 'b', 'a'], numbers: [1, 2] }),
    gone: { 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:numbers': { 'v:2': L } } },
    want: spec({ tags: ['b'], numbers: [1] }),
  },
  'a list that lost its last item goes': {
    value: spec({ size: 1, tags: ['a'], parts: [{ name: 'a', size: 1 }] }),
    gone: { 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:parts': { 'k:{"name":"a"}': { 'f:name': L, 'f:size': L } } } },
    want: spec({ size: 1 }),
  },
  'a map that lost its last entry goes, the root stays': {
    value: { labels: { a: 'b' } },
    gone: { 'f:labels': { 'f:a': L } },
    want: {},
  },
  'what was empty before stays': {
    value: { labels: {}, spec: { tags: [], parts: null } },
    gone: { 'f:labels': { 'f:a': L }, 'f:spec': { 'f:tags': { 'v:"a"': L }, 'f:parts': { 'k:{"name":"a"}': L } } },
    want: { labels: {}, spec: { tags: [], parts: null } },
  },
  'a path within what is atomic means all of it': {
    value: spec({ size: 1, args: ['a', 'b'], selector: { a: '1' } }),
    gone: { 'f:spec': { 'f:args': { 'i:0': L }, 'f:selector': { 'f:a': L } } },
    want: spec({ size: 1 }),
  },
  'a path within a scalar means nothing': {
    value: spec({ size: 1 }),
    gone: { 'f:spec': { 'f:size': { 'f:a': L } } },
    want: spec({ size: 1 }),
  },
  'what is not there cannot go': {
    value: spec({ size: 1 }),
    gone: { 'f:spec': { 'f:on': L }, 'f:x': L },
    want: spec({ size: 1 }),
  },
  'nothing goes': { value: spec({ size: 1 }), gone: {}, want: spec({ size: 1 }) },
  'unknown fields, too': {
    value: { other: { a: 1, b: 2 } },
    gone: { 'f:other': { 'f:a': L } },
    want: { other: { b: 2 } },
  },
};

for (const [sentence, { value, gone, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const before = structuredClone(value);
    assert.deepEqual(removeFields(value, parseFieldsV1(gone), SAMPLE), want);
    assert.deepEqual(value, before);
  });
}
