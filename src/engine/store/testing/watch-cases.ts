/** Conformance: replay and live events, without gap or repetition. */
import assert from 'node:assert/strict';
import type { Cases } from '#engine/store/testing/conformance.ts';
import { RevisionGoneError } from '#engine/store/store.ts';
import type { Store, StoreEvent } from '#engine/store/store.ts';
import { put, remove, replay, showEvent } from '#engine/store/testing/test-bed.ts';

/** Starts a watch and records what it receives, call by call. */
function observe(store: Store, since: number, prefix?: string): { calls: string[][]; end: () => void } {
  const calls: string[][] = [];
  const end = store.watch({ collection: 'pods', since, prefix }, (events) => calls.push(events.map(showEvent)));
  return { calls, end };
}

export const watchCases: Cases = {
  async 'replays the events after the revision in one call before it returns'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    await put(store, 'b', '', 'nodes');
    await put(store, 'a');
    await remove(store, 'a');
    assert.deepEqual(observe(store, 0).calls, [['put a@1 was nothing', 'put a@3 was 1', 'delete a@4 was 3']]);
    assert.deepEqual(observe(store, 3).calls, [['delete a@4 was 3']]);
    assert.deepEqual(observe(store, 4).calls, []);
  },

  async 'reports the replaced entry, and the last state of a deleted one'(bed) {
    const store = await bed.open();
    await put(store, 'a', 'one');
    await remove(store, 'a', 'last');
    const [, deleted] = replay(store, 0);
    assert.equal(deleted?.entry.bytes.toString(), '2 last');
    assert.equal(deleted?.previous?.bytes.toString(), '1 one');
  },

  async 'continues live without gap or repetition, regardless of writes in flight at its start'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    const writes = [put(store, 'b'), put(store, 'c')];
    const { calls } = observe(store, 0);
    await Promise.all(writes);
    await put(store, 'd');
    assert.deepEqual(calls.flat(), [
      'put a@1 was nothing',
      'put b@2 was nothing',
      'put c@3 was nothing',
      'put d@4 was nothing',
    ]);
  },

  async 'calls once per commit, and not at all if nothing is in its range'(bed) {
    const store = await bed.open();
    const all = observe(store, 0).calls;
    const some = observe(store, 0, 'a/').calls;
    await Promise.all([put(store, 'a/1'), put(store, 'b/1'), put(store, 'a/2'), put(store, 'x', '', 'nodes')]);
    await put(store, 'b/2');
    assert.deepEqual(all, [
      ['put a/1@1 was nothing', 'put b/1@2 was nothing', 'put a/2@3 was nothing'],
      ['put b/2@5 was nothing'],
    ]);
    assert.deepEqual(some, [['put a/1@1 was nothing', 'put a/2@3 was nothing']]);
    assert.deepEqual(observe(store, 1, 'a/').calls, [['put a/2@3 was nothing']]);
  },

  async 'reports nothing after it was ended, not even during a commit'(bed) {
    const store = await bed.open();
    const first = observe(store, 0);
    store.watch({ collection: 'pods', since: 0 }, () => second.end());
    const second = observe(store, 0);
    await put(store, 'a');
    first.end();
    first.end();
    await put(store, 'b');
    assert.deepEqual(first.calls, [['put a@1 was nothing']]);
    assert.deepEqual(second.calls, []);
  },

  async 'sees each event once when another listener starts it'(bed) {
    const store = await bed.open();
    const seen: StoreEvent[] = [];
    let started = false;
    store.watch({ collection: 'pods', since: 0 }, () => {
      if (started) return;
      started = true;
      store.watch({ collection: 'pods', since: 0 }, (events) => seen.push(...events));
    });
    await put(store, 'a');
    await put(store, 'b');
    assert.deepEqual(seen.map(showEvent), ['put a@1 was nothing', 'put b@2 was nothing']);
  },

  async 'allows a listener to write'(bed) {
    const store = await bed.open();
    let written: Promise<unknown> | undefined;
    store.watch({ collection: 'pods', since: 0 }, () => {
      written ??= put(store, 'b');
    });
    await put(store, 'a');
    await written;
    assert.equal(store.get('pods', 'b')?.revision, 2);
  },

  async 'starts after a future revision'(bed) {
    const store = await bed.open();
    const { calls } = observe(store, 2);
    await Promise.all([put(store, 'a'), put(store, 'b'), put(store, 'c')]);
    assert.deepEqual(calls, [['put c@3 was nothing']]);
  },

  async 'rejects only a start before the compacted revision'(bed) {
    const store = await bed.open({ maxHistoryEvents: 8 });
    for (let i = 0; i < 20; i++) await put(store, 'a');
    const { compactedRevision } = store;
    const kept = replay(store, compactedRevision);
    assert.equal(kept[0]?.entry.revision, compactedRevision + 1);
    assert.equal(kept[0]?.previous?.revision, compactedRevision);
    assert.equal(kept.length, 20 - compactedRevision);
    assert.throws(() => replay(store, compactedRevision - 1), RevisionGoneError);
  },
};
