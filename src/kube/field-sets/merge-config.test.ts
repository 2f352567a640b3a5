import assert from 'node:assert/strict';
import test from 'node:test';
import { FieldTypeError } from './list-item.ts';
import { mergeConfig } from './merge-config.ts';
import { SAMPLE, spec } from './testing/sample-set.ts';

const cases: Record<string, { live: unknown; config: unknown; want: unknown }> = {
  'sets the fields of the configuration and keeps all others': {
    live: { kind: 'A', spec: { size: 1, on: true } },
    config: spec({ size: 2, time: 'now' }),
    want: { kind: 'A', spec: { size: 2, on: true, time: 'now' } },
  },
  'takes the whole configuration if nothing is live': {
    live: undefined,
    config: spec({ size: 2 }),
    want: spec({ size: 2 }),
  },
  'replaces atomic lists and maps': {
    live: spec({ args: ['a', 'b'], selector: { a: '1' } }),
    config: spec({ args: ['c'], selector: { b: '2' } }),
    want: spec({ args: ['c'], selector: { b: '2' } }),
  },
  'merges free maps': {
    live: { labels: { a: '1', b: '2' } },
    config: { labels: { b: '3', c: '4' } },
    want: { labels: { a: '1', b: '3', c: '4' } },
  },
  'removes nothing for an empty or null map, or an empty list': {
    live: { labels: { a: '1' }, spec: { tags: ['x'], open: { a: 1 } } },
    config: { labels: null, spec: { tags: [], open: {} } },
    want: { labels: { a: '1' }, spec: { tags: ['x'], open: { a: 1 } } },
  },
  'replaces a scalar by null': { live: spec({ size: 1 }), config: spec({ size: null }), want: spec({ size: null }) },
  'keeps null as applied if nothing is live': {
    live: { labels: {}, spec: { tags: [] } },
    config: { labels: null, spec: { tags: null } },
    want: { labels: null, spec: { tags: null } },
  },
  'merges items of a map list by their key': {
    live: spec({ parts: [{ name: 'a', size: 1 }] }),
    config: spec({ parts: [{ name: 'a', free: { x: 1 } }] }),
    want: spec({ parts: [{ name: 'a', size: 1, free: { x: 1 } }] }),
  },
  'finds a key by its default': {
    live: spec({ ports: [{ port: 80, protocol: 'TCP', name: 'web' }] }),
    config: spec({ ports: [{ port: 80, name: 'www' }] }),
    want: spec({ ports: [{ port: 80, protocol: 'TCP', name: 'www' }] }),
  },
  'replaces duplicates in the live list by the applied item': {
    live: spec({ parts: [{ name: 'a', size: 1 }, { name: 'b' }, { name: 'a', size: 2 }] }),
    config: spec({ parts: [{ name: 'a', size: 3 }] }),
    want: spec({ parts: [{ name: 'a', size: 3 }, { name: 'b' }] }),
  },
  'keeps duplicates that are not applied': {
    live: spec({ tags: ['a', 'a', 'b'] }),
    config: spec({ tags: ['c'] }),
    want: spec({ tags: ['a', 'a', 'b', 'c'] }),
  },
  'gives a free value the applied shape': {
    live: { other: 'x', more: { a: 1 }, list: [1] },
    config: { other: { a: 1 }, more: 'y', list: { b: 2 } },
    want: { other: { a: 1 }, more: 'y', list: { b: 2 } },
  },
  'treats names of Object.prototype as ordinary names': {
    live: { labels: { a: '1' } },
    config: { labels: { constructor: 'x' } },
    want: { labels: { a: '1', constructor: 'x' } },
  },
};

for (const [sentence, { live, config, want }] of Object.entries(cases)) {
  test(sentence, () => {
    const before = structuredClone([live, config]);
    assert.deepEqual(mergeConfig(live, config, SAMPLE), want);
    assert.deepEqual([live, config], before);
  });
}

/** Live list, applied list, merged list; each letter is an item. */
const orders: Record<string, [string, string, string]> = {
  'keeps the live order if nothing is added': ['abc', 'b', 'abc'],
  'appends new items': ['ab', 'c', 'abc'],
  'inserts new items where the configuration has them': ['ab', 'axb', 'axb'],
  'inserts a new first item': ['ab', 'xa', 'xab'],
  'prefers the order of the configuration': ['ab', 'ba', 'ba'],
  'keeps a live item behind its predecessor': ['axb', 'ba', 'xba'],
  'keeps other items in place when one moves up': ['abcd', 'da', 'bcda'],
  'keeps live items at the front': ['xab', 'ab', 'xab'],
  'keeps live items at both ends': ['xaby', 'bza', 'xbyza'],
  'takes the configuration if nothing is live': ['', 'ba', 'ba'],
  'takes the live list if nothing is applied': ['ba', '', 'ba'],
};

for (const [sentence, [live, config, want]] of Object.entries(orders)) {
  test(`order: ${sentence}`, () => {
    const merged = mergeConfig(spec({ tags: [...live] }), spec({ tags: [...config] }), SAMPLE);
    assert.deepEqual(merged, spec({ tags: [...want] }));
  });
}

const refused: Record<string, { live: unknown; config: unknown; want: string }> = {
  'duplicates in a set of the configuration': {
    live: spec({ tags: ['a'] }),
    config: spec({ tags: ['b', 'b'] }),
    want: '.spec.tags: duplicate entries for key [="b"]',
  },
  'duplicates in a map list': {
    live: spec({ ports: [{ port: 1 }] }),
    config: spec({ ports: [{ port: 80 }, { port: 80, protocol: 'TCP' }] }),
    want: '.spec.ports: duplicate entries for key [port=80,protocol="TCP"]',
  },
  'a live item without a key': {
    live: spec({ tags: [{}] }),
    config: spec({ tags: ['a'] }),
    want: ".spec.tags: element 0: associative list without keys has an element that's a map type",
  },
};

for (const [sentence, { live, config, want }] of Object.entries(refused)) {
  test(`refuses ${sentence}`, () => {
    assert.throws(() => mergeConfig(live, config, SAMPLE), new FieldTypeError(want));
  });
}
