/** Conformance: list with its ranges, now and in the past. */
import assert from 'node:assert/strict';
import type { Cases } from '#engine/store/testing/conformance.ts';
import { RevisionGoneError } from '#engine/store/store.ts';
import type { ListRange, Store } from '#engine/store/store.ts';
import { ids, put, remove, show } from '#engine/store/testing/test-bed.ts';

const NAMES = ['a/1', 'a/2', 'a-b/1', 'b/1', 'b/2', 'b/3', 'c'];

async function fill(store: Store): Promise<void> {
  await Promise.all(NAMES.toReversed().map((id) => put(store, id)));
}

const ranges: Record<string, { range: ListRange; want: string[]; remaining?: number }> = {
  'everything in id order': { range: {}, want: ['a-b/1', 'a/1', 'a/2', 'b/1', 'b/2', 'b/3', 'c'] },
  'one namespace': { range: { prefix: 'a/' }, want: ['a/1', 'a/2'] },
  'a namespace that does not exist': { range: { prefix: 'aa/' }, want: [] },
  'the ids after an id': { range: { after: 'b/2' }, want: ['b/3', 'c'] },
  'the ids after a missing id': { range: { after: 'b/22' }, want: ['b/3', 'c'] },
  'the ids after an id within a namespace': { range: { prefix: 'b/', after: 'b/1' }, want: ['b/2', 'b/3'] },
  'nothing after the end of a namespace': { range: { prefix: 'a/', after: 'b/1' }, want: [] },
  'a whole namespace after an id before it': { range: { prefix: 'b/', after: 'a/1' }, want: ['b/1', 'b/2', 'b/3'] },
  'a page': { range: { limit: 3 }, want: ['a-b/1', 'a/1', 'a/2'], remaining: 4 },
  'a page of a namespace': { range: { prefix: 'b/', limit: 2 }, want: ['b/1', 'b/2'], remaining: 1 },
  'the next page': { range: { prefix: 'b/', limit: 2, after: 'b/2' }, want: ['b/3'] },
  'a page that just fits': { range: { prefix: 'b/', limit: 3 }, want: ['b/1', 'b/2', 'b/3'] },
};

const rangeCases: Cases = Object.fromEntries(
  Object.entries(ranges).map(([what, { range, want, remaining = 0 }]) => [
    `lists ${what}, now and in the past`,
    async (bed) => {
      const store = await bed.open();
      await fill(store);
      const { revision } = store;
      const expected = { ids: want, remaining, revision };
      const now = store.list('pods', range);
      assert.deepEqual({ ids: ids(now.entries), remaining: now.remaining, revision: now.revision }, expected);

      for (const id of NAMES) await (id.endsWith('1') ? remove(store, id) : put(store, id));
      await put(store, 'a/0');
      await put(store, 'b/0');
      await put(store, 'd');
      const then = store.list('pods', { ...range, atRevision: revision });
      assert.deepEqual({ ids: ids(then.entries), remaining: then.remaining, revision: then.revision }, expected);
      assert.ok(then.entries.every((entry) => entry.revision <= revision));
    },
  ]),
);

export const readCases: Cases = {
  ...rangeCases,

  async 'lists nothing for a collection that does not exist'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    assert.deepEqual(store.list('nodes'), { entries: [], revision: 1, remaining: 0 });
    assert.equal(store.count('nodes'), 0);
    assert.equal(store.get('nodes', 'a'), undefined);
  },

  async 'lists the state of each past revision'(bed) {
    const store = await bed.open();
    await put(store, 'a', 'one');
    await put(store, 'b', 'one');
    await put(store, 'a', 'two');
    await remove(store, 'a');
    await put(store, 'a', 'three');
    const listAt = (atRevision: number): unknown => store.list('pods', { atRevision }).entries.map(show);
    assert.deepEqual(listAt(0), []);
    assert.deepEqual(listAt(1), ['a@1: 1 one']);
    assert.deepEqual(listAt(2), ['a@1: 1 one', 'b@2: 2 one']);
    assert.deepEqual(listAt(3), ['a@3: 3 two', 'b@2: 2 one']);
    assert.deepEqual(listAt(4), ['b@2: 2 one']);
    assert.deepEqual(listAt(5), ['a@5: 5 three', 'b@2: 2 one']);
    assert.throws(() => listAt(6), RangeError);
  },

  async 'rejects only lists from before the compacted revision'(bed) {
    const store = await bed.open({ maxHistoryEvents: 8 });
    for (let i = 0; i < 20; i++) await put(store, `id-${i % 3}`);
    const { compactedRevision } = store;
    assert.ok(compactedRevision > 0 && compactedRevision < 20);
    assert.equal(store.list('pods', { atRevision: compactedRevision }).entries.length, 3);
    assert.throws(
      () => store.list('pods', { atRevision: compactedRevision - 1 }),
      (error) => error instanceof RevisionGoneError && error.compactedRevision === compactedRevision,
    );
  },

  async 'drops history by the bytes that it holds'(bed) {
    const store = await bed.open({ maxHistoryBytes: 1000 });
    for (let i = 0; i < 50; i++) await put(store, `created-${i}`, 'x'.repeat(100));
    assert.equal(store.compactedRevision, 0, 'current versions do not count');
    for (let i = 0; i < 20; i++) await put(store, 'created-0', 'x'.repeat(100));
    assert.ok(store.compactedRevision > 50);
    await remove(store, 'created-1', 'x'.repeat(2000));
    assert.equal(store.compactedRevision, store.revision);
  },
};
