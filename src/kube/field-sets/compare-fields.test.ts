import assert from 'node:assert/strict';
import test from 'node:test';
import { compareFields } from './compare-fields.ts';
import { formatFieldsV1 } from './fields-v1.ts';
import { FieldTypeError } from './list-item.ts';
import { SAMPLE, spec } from './sample.fixture.ts';

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
  'equal values': { before: spec({ size: 1, args: ['a'] }), after: spec({ args: ['a'], size: 1 }) },
  'a created object: named fields are there, too, but not the root': {
    before: undefined,
    after: { labels: { a: 'b' }, spec: { size: 1, parts: [{ name: 'x' }] } },
    added: {
      'f:labels': { '.': L, 'f:a': L },
      'f:spec': { '.': L, 'f:parts': { '.': L, 'k:{"name":"x"}': { '.': L, 'f:name': L } }, 'f:size': L },
    },
  },
  'an object that went': {
    before: spec({ tags: ['a'] }),
    after: {},
    removed: { 'f:spec': { '.': L, 'f:tags': { '.': L, 'v:"a"': L } } },
  },
  'a changed scalar': { before: spec({ size: 1 }), after: spec({ size: 2 }), modified: below({ 'f:size': L }) },
  'a field more and a field less': {
    before: spec({ size: 1, on: true }),
    after: spec({ on: true, kind: 'x' }),
    added: below({ 'f:kind': L }),
    removed: below({ 'f:size': L }),
  },
  'an atomic list is one': {
    before: spec({ args: ['a'] }),
    after: spec({ args: ['a', 'b'] }),
    modified: below({ 'f:args': L }),
  },
  'the order of an atomic list counts': {
    before: spec({ args: ['a', 'b'] }),
    after: spec({ args: ['b', 'a'] }),
    modified: below({ 'f:args': L }),
  },
  'an atomic map is one': {
    before: spec({ selector: { a: '1' } }),
    after: spec({ selector: { a: '1', b: '2' } }),
    modified: below({ 'f:selector': L }),
  },
  'the order of sets and map lists does not count': {
    before: spec({ tags: ['a', 'b'], parts: [{ name: 'x' }, { name: 'y' }] }),
    after: spec({ tags: ['b', 'a'], parts: [{ name: 'y' }, { name: 'x' }] }),
  },
  'items of a set': {
    before: spec({ tags: ['a', 'b'] }),
    after: spec({ tags: ['b', 'c'] }),
    added: below({ 'f:tags': { 'v:"c"': L } }),
    removed: below({ 'f:tags': { 'v:"a"': L } }),
  },
  'items of a map list': {
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
  'a key that becomes explicit is a field more': {
    before: spec({ ports: [{ port: 80 }] }),
    after: spec({ ports: [{ port: 80, protocol: 'TCP' }] }),
    added: below({ 'f:ports': { 'k:{"port":80,"protocol":"TCP"}': { 'f:protocol': L } } }),
  },
  'null and the empty list are told apart': {
    before: spec({ tags: null }),
    after: spec({ tags: [] }),
    modified: below({ 'f:tags': L }),
  },
  'null and the empty map are told apart': {
    before: { labels: null },
    after: { labels: {} },
    modified: { 'f:labels': L },
  },
  'null that is filled': {
    before: { labels: null },
    after: { labels: { a: 'b' } },
    added: { 'f:labels': { 'f:a': L } },
  },
  'a list that is emptied loses its items, not itself': {
    before: spec({ tags: ['a'] }),
    after: spec({ tags: [] }),
    removed: below({ 'f:tags': { 'v:"a"': L } }),
  },
  'a scalar that becomes null': {
    before: spec({ size: 1 }),
    after: spec({ size: null }),
    modified: below({ 'f:size': L }),
  },
  'a number that becomes a string': {
    before: spec({ target: 1 }),
    after: spec({ target: '1' }),
    modified: below({ 'f:target': L }),
  },
  'a free value that changes its shape lost what it was and gained what it is': {
    before: { other: { a: 1 } },
    after: { other: 'x' },
    modified: { 'f:other': L },
    removed: { 'f:other': { 'f:a': L } },
  },
  'a free list that becomes a map': {
    before: { other: [1] },
    after: { other: { a: 1 } },
    added: { 'f:other': { 'f:a': L } },
    modified: { 'f:other': L },
  },
  'equal doubles': {
    before: spec({ tags: ['a', 'a', 'b'] }),
    after: spec({ tags: ['b', 'a', 'a'] }),
  },
  'doubles that change are one': {
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
  'doubles that become one item': {
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
  'an item that becomes doubles': {
    before: spec({ parts: [{ name: 'a', size: 1 }] }),
    after: spec({ parts: [{ name: 'a' }, { name: 'a' }] }),
    added: below({ 'f:parts': { 'k:{"name":"a"}': L } }),
    removed: below({ 'f:parts': { 'k:{"name":"a"}': { '.': L, 'f:name': L, 'f:size': L } } }),
  },
  'names of object members mean nothing': {
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
  test(`refused: ${sentence}`, () => {
    assert.throws(() => compareFields(before, after, SAMPLE), new FieldTypeError(want));
  });
}
