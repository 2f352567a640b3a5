import assert from 'node:assert/strict';
import test from 'node:test';
import { FieldTypeError } from './list-item.ts';
import { mergeConfig } from './merge-config.ts';
import { SAMPLE, spec } from './sample.fixture.ts';

const cases: Record<string, { live: unknown; config: unknown; want: unknown }> = {
  'the configuration wins, and what it does not name stays': {
    live: { kind: 'A', spec: { size: 1, on: true } },
    config: spec({ size: 2, time: 'now' }),
    want: { kind: 'A', spec: { size: 2, on: true, time: 'now' } },
  },
  'all of it when nothing is live': { live: undefined, config: spec({ size: 2 }), want: spec({ size: 2 }) },
  'atomic lists and maps are replaced': {
    live: spec({ args: ['a', 'b'], selector: { a: '1' } }),
    config: spec({ args: ['c'], selector: { b: '2' } }),
    want: spec({ args: ['c'], selector: { b: '2' } }),
  },
  'free maps are joined': {
    live: { labels: { a: '1', b: '2' } },
    config: { labels: { b: '3', c: '4' } },
    want: { labels: { a: '1', b: '3', c: '4' } },
  },
  'nothing is removed by an empty or null map, nor by an empty list': {
    live: { labels: { a: '1' }, spec: { tags: ['x'], open: { a: 1 } } },
    config: { labels: null, spec: { tags: [], open: {} } },
    want: { labels: { a: '1' }, spec: { tags: ['x'], open: { a: 1 } } },
  },
  'null replaces a scalar': { live: spec({ size: 1 }), config: spec({ size: null }), want: spec({ size: null }) },
  'null and empty are kept as applied where there is nothing': {
    live: { labels: {}, spec: { tags: [] } },
    config: { labels: null, spec: { tags: null } },
    want: { labels: null, spec: { tags: null } },
  },
  'items of a map list are joined by their key': {
    live: spec({ parts: [{ name: 'a', size: 1 }] }),
    config: spec({ parts: [{ name: 'a', free: { x: 1 } }] }),
    want: spec({ parts: [{ name: 'a', size: 1, free: { x: 1 } }] }),
  },
  'a key is found by its default': {
    live: spec({ ports: [{ port: 80, protocol: 'TCP', name: 'web' }] }),
    config: spec({ ports: [{ port: 80, name: 'www' }] }),
    want: spec({ ports: [{ port: 80, protocol: 'TCP', name: 'www' }] }),
  },
  'doubles in the live list become what is applied, once': {
    live: spec({ parts: [{ name: 'a', size: 1 }, { name: 'b' }, { name: 'a', size: 2 }] }),
    config: spec({ parts: [{ name: 'a', size: 3 }] }),
    want: spec({ parts: [{ name: 'a', size: 3 }, { name: 'b' }] }),
  },
  'doubles that nobody applies stay': {
    live: spec({ tags: ['a', 'a', 'b'] }),
    config: spec({ tags: ['c'] }),
    want: spec({ tags: ['a', 'a', 'b', 'c'] }),
  },
  'a free value takes the shape that is applied': {
    live: { other: 'x', more: { a: 1 }, list: [1] },
    config: { other: { a: 1 }, more: 'y', list: { b: 2 } },
    want: { other: { a: 1 }, more: 'y', list: { b: 2 } },
  },
  'names of object members mean nothing': {
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

/** Live list, applied list, joined list; each letter is an item. */
const orders: Record<string, [string, string, string]> = {
  'the live order when nothing is added': ['abc', 'b', 'abc'],
  'new items go to the end': ['ab', 'c', 'abc'],
  'new items stand where the configuration has them': ['ab', 'axb', 'axb'],
  'a new first item': ['ab', 'xa', 'xab'],
  'the order of the configuration wins': ['ab', 'ba', 'ba'],
  'a live item stays behind the one it followed': ['axb', 'ba', 'xba'],
  'an item that moved up leaves others in place': ['abcd', 'da', 'bcda'],
  'live items in front stay there': ['xab', 'ab', 'xab'],
  'both ends': ['xaby', 'bza', 'xbyza'],
  'nothing live': ['', 'ba', 'ba'],
  'nothing applied': ['ba', '', 'ba'],
};

for (const [sentence, [live, config, want]] of Object.entries(orders)) {
  test(`order: ${sentence}`, () => {
    const joined = mergeConfig(spec({ tags: [...live] }), spec({ tags: [...config] }), SAMPLE);
    assert.deepEqual(joined, spec({ tags: [...want] }));
  });
}

const refused: Record<string, { live: unknown; config: unknown; want: string }> = {
  'doubles in a set of the configuration': {
    live: spec({ tags: ['a'] }),
    config: spec({ tags: ['b', 'b'] }),
    want: '.spec.tags: duplicate entries for key [="b"]',
  },
  'doubles in a map list': {
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
  test(`refused: ${sentence}`, () => {
    assert.throws(() => mergeConfig(live, config, SAMPLE), new FieldTypeError(want));
  });
}
