import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ListOptions, Reader } from '#client/client.ts';
import { listRemainingObjects, type RemainingRange } from '#engine/controllers/remaining-objects.ts';
import type { Stored } from '#kube/meta.ts';

const PODS = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true };

function pod(name: string, metadata: object = {}): Stored {
  const identity = { namespace: 'ns', name, uid: name, resourceVersion: '1', creationTimestamp: '' };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { ...identity, ...metadata } };
}
const held = (name: string) => pod(name, { deletionTimestamp: 'then', finalizers: ['example.org/hold'] });

/** A reader that returns these pages one after the other, and counts the requests. */
function paged(...pages: Stored[][]) {
  let requests = 0;
  const list = async (_: unknown, { continue: at = '0' }: ListOptions = {}) => {
    requests++;
    const next = Number(at) + 1;
    const metadata = { resourceVersion: '1', ...(next < pages.length ? { continue: String(next) } : {}) };
    return { metadata, items: pages[Number(at)] ?? [] };
  };
  return { reader: { list } as unknown as Reader, requests: () => requests };
}

interface Case {
  readonly pages: Stored[][];
  readonly range?: Partial<RemainingRange>;
  readonly toDelete: string[];
  readonly count: number;
  readonly complete: boolean;
  readonly requests: number;
}

const cases: Record<string, Case> = {
  'finds nothing': { pages: [[]], toDelete: [], count: 0, complete: true, requests: 1 },
  'skips pages of objects under deletion': {
    pages: [[held('a'), held('b')], [held('c')], [held('d'), pod('e')]],
    toDelete: ['e'],
    count: 5,
    complete: true,
    requests: 3,
  },
  'stops listing when it has as many objects as requested': {
    pages: [[pod('a'), pod('b')], [pod('c')], [pod('d')]],
    range: { atMost: 2 },
    toDelete: ['a', 'b'],
    count: 2,
    complete: false,
    requests: 1,
  },
  'is not complete if the page contains more objects': {
    pages: [[pod('a'), pod('b')]],
    range: { atMost: 1 },
    toDelete: ['a'],
    count: 2,
    complete: false,
    requests: 1,
  },
  'starts after the given key, and counts all objects': {
    pages: [[pod('a'), pod('b')], [pod('c')]],
    range: { atMost: 1, after: 'ns/b' },
    toDelete: ['c'],
    count: 3,
    complete: true,
    requests: 2,
  },
};

for (const [name, { pages, range, ...want }] of Object.entries(cases)) {
  test(name, async () => {
    const { reader, requests } = paged(...pages);
    const { signal } = new AbortController();
    const { toDelete, count, complete } = await listRemainingObjects(reader, PODS, { atMost: 100, signal, ...range });
    const names = toDelete.map(({ metadata }) => metadata.name);
    assert.deepEqual({ toDelete: names, count, complete, requests: requests() }, want);
  });
}

test('counts objects by finalizer, including those under deletion', async () => {
  const { reader } = paged([held('a')], [pod('b', { finalizers: ['example.org/hold', 'example.org/other'] })]);
  const { finalizers } = await listRemainingObjects(reader, PODS, {
    atMost: 100,
    signal: new AbortController().signal,
  });
  assert.deepEqual(Object.fromEntries(finalizers), { 'example.org/hold': 2, 'example.org/other': 1 });
});
