import assert from 'node:assert/strict';
import test from 'node:test';
import { compareFields } from './compare-fields.ts';
import { formatFieldsV1 } from './fields-v1.ts';
import { FieldTypeError } from './list-item.ts';
import { SAMPLE, spec } from './testing/sample-set.ts';

const L = {};
type Json = Record<string, unknown>;

interface Case {
  before: unknown;
  after: unknown;
  added?: Json;
  modified?: Json;
  removed?: Json;
}

const below = (fields: Json): Json => ({ 'f:spec': fields });

const cases: Record<string, Case> = {
  'finds nothing in equal values': { before: spec({ size: 1, args: ['a'] }), after: spec({ args: ['a'], size: 1 }) },
  'a created object adds its named fields, but not the root': {
    before: undefined,
    after: { labels: { a: 'b' }, spec: { size: 1, parts: [{ name: 'x' }] } },
    added: {
      'f:labels': { '.': L, 'f:a': L },
      'f:spec': { '.': L, 'f:parts': { '.': L, 'k:{"name":"x"}': { '.': L, 'f:name': L } }, 'f:size': L },
    },
  },
  'a removed field is removed with everything in it': {
    before: spec({ tags: ['a'] }),
    after: {},
    removed: { 'f:spec': { '.': L, 'f:tags': { '.': L, 'v:"a"': L } } },
  },
  'a changed scalar is modified': {
    before: spec({ size: 1 }),
    after: spec({ size: 2 }),
    modified: below({ 'f:size': L }),
  },
  'one field is added and another removed': {
    before: spec({ size: 1, on: true }),
    after: spec({ on: true, kind: 'x' }),
    added: below({ 'f:kind': L }),
    removed: below({ 'f:size': L }),
  },
  'an atomic list is modified as a whole': {
    before: spec({ args: ['a'] }),
    after: spec({ args: ['a', 'b'] }),
    modified: below({ 'f:args': L }),
  },
  'the order of an atomic list matters': {
    before: spec({ args: ['a', 'b'] }),
    after: spec({ args: ['b', 'a'] }),
    modified: below({ 'f:args': L }),
  },
  'an atomic map is modified as a whole': {
    before: spec({ selector: { a: '1' } }),
    after: spec({ selector: { a: '1', b: '2' } }),
    modified: below({ 'f:selector': L }),
  },
  'the order of sets and map lists does not matter': {
    before: spec({ tags: ['a', 'b'], parts: [{ name: 'x' }, { name: 'y' }] }),
    after: spec({ tags: ['b', 'a'], parts: [{ name: 'y' }, { name: 'x' }] }),
  },
  'items of a set are added and removed': {
    before: spec({ tags: ['a', 'b'] }),
    after: spec({ tags: ['b', 'c'] }),
    added: below({ 'f:tags': { 'v:"c"': L } }),
    removed: below({ 'f:tags': { 'v:"a"': L } }),
  },
  'items of a map list are added, modified and removed': {
    before: spec({ parts: [{ name: 'x', size: 1 }, { name: 'y' }] }),
    after: spec({
      parts: [
        { name: 'x', size: 2 },
        { name: 'z', size: 3 },
      ],
    }),
    added: below({ 'f:parts': { 'k:{"name":"z"}': { '.': L, 'f:name': L, 'f:size': L } } }),
    modified: below({ 'f:parts': { 'k:{"name":"x"}': { 'f:size': L } } }),
    removed: below({ 'f:parts': { 'k:{"name":"y"}': { '.': L, 'f:name': L } } }),
  },
  'a key that becomes explicit is added': {
    before: spec({ ports: [{ port: 80 }] }),
    after: spec({ ports: [{ port: 80, protocol: 'TCP' }] }),
    added: below({ 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { 'f:protocol': L } } }),
  },
  'null differs from the empty list': {
    before: spec({ tags: null }),
    after: spec({ tags: [] }),
    modified: below({ 'f:tags': L }),
  },
  'null differs from the empty map': {
    before: { labels: null },
    after: { labels: {} },
    modified: { 'f:labels': L },
  },
  'a map that replaces null adds its entries only': {
    before: { labels: null },
    after: { labels: { a: 'b' } },
    added: { 'f:labels': { 'f:a': L } },
  },
  'a list that becomes empty loses its items, not itself': {
    before: spec({ tags: ['a'] }),
    after: spec({ tags: [] }),
    removed: below({ 'f:tags': { 'v:"a"': L } }),
  },
  'a scalar that becomes null is modified': {
    before: spec({ size: 1 }),
    after: spec({ size: null }),
    modified: below({ 'f:size': L }),
  },
  'a number that becomes a string is modified': {
    before: spec({ target: 1 }),
    after: spec({ target: '1' }),
    modified: below({ 'f:target': L }),
  },
  'a map that becomes a scalar is modified and loses its entries': {
    before: { other: { a: 1 } },
    after: { other: 'x' },
    modified: { 'f:other': L },
    removed: { 'f:other': { 'f:a': L } },
  },
  'a list that becomes a map is modified and gains its entries': {
    before: { other: [1] },
    after: { other: { a: 1 } },
    added: { 'f:other': { 'f:a': L } },
    modified: { 'f:other': L },
  },
  'equal duplicates do not differ': {
    before: spec({ tags: ['a', 'a', 'b'] }),
    after: spec({ tags: ['b', 'a', 'a'] }),
  },
  'changed duplicates are modified as one item': {
    before: spec({
      parts: [
        { name: 'a', size: 1 },
        { name: 'a', size: 2 },
      ],
    }),
    after: spec({
      parts: [
        { name: 'a', size: 1 },
        { name: 'a', size: 3 },
      ],
    }),
    modified: below({ 'f:parts': { 'k:{"name":"a"}': L } }),
  },
  'duplicates that become one item are removed, and the item is added': {
    before: spec({
      parts: [
        { name: 'a', size: 1 },
        { name: 'a', size: 2 },
      ],
    }),
    after: spec({ parts: [{ name: 'a', size: 1 }] }),
    added: below({ 'f:parts': { 'k:{"name":"a"}': { '.': L, 'f:name': L, 'f:size': L } } }),
    removed: below({ 'f:parts': { 'k:{"name":"a"}': L } }),
  },
  'an item that becomes duplicates is removed, and the duplicates are added': {
    before: spec({ parts: [{ name: 'a', size: 1 }] }),
    after: spec({ parts: [{ name: 'a' }, { name: 'a' }] }),
    added: below({ 'f:parts': { 'k:{"name":"a"}': L } }),
    removed: below({ 'f:parts': { 'k:{"name":"a"}': { '.': L, 'f:name': L, 'f:size': L } } }),
  },
  'names of Object.prototype are ordinary names': {
    before: { labels: { a: 'b' } },
    after: { labels: { a: 'b', toString: 'x' } },
    added: { 'f:labels': { 'f:toString': L } },
  },
};

for (const [sentence, { before, after, added = {}, modified = {}, removed = {} }] of Object.entries(cases)) {
  test(sentence, () => {
    const found = compareFields(before, after, SAMPLE);
    assert.deepEqual(
      {
        added: formatFieldsV1(found.added),
        modified: formatFieldsV1(found.modified),
        removed: formatFieldsV1(found.removed),
      },
      { added, modified, removed },
    );
  });
}

const refused: Record<string, { before: unknown; after: unknown; want: string }> = {
  'an item without its key in a new list': {
    before: {},
    after: spec({ parts: [{ name: 'a' }, { size: 1 }] }),
    want: '.spec.parts: element 1: associative list with keys has an element that omits key field "name" (and doesn\'t have default value)',
  },
  'a null item in a changed list': {
    before: spec({ parts: [] }),
    after: spec({ parts: [null] }),
    want: '.spec.parts: element 0: associative list with keys may not have a null element',
  },
};

for (const [sentence, { before, after, want }] of Object.entries(refused)) {
  test(`refuses ${sentence}`, () => {
    assert.throws(() => compareFields(before, after, SAMPLE), new FieldTypeError(want));
  });
}
