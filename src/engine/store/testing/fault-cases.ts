/** Conformance: a journal that fails and recovers. */
import assert from 'node:assert/strict';
import type { Cases } from '#engine/store/testing/conformance.ts';
import { StoreUnavailableError } from '#engine/store/store.ts';
import { LARGE_TEXT, put, remove, replay, show, showEvent } from '#engine/store/testing/test-bed.ts';

export const faultCases: Cases = {
  async 'fails the write, reports why and still serves reads'(bed) {
    const store = await bed.open();
    await put(store, 'a', 'one');
    assert.equal(store.fault, undefined);
    await bed.failWrites();
    await assert.rejects(put(store, 'a', LARGE_TEXT), (error) => {
      assert(error instanceof StoreUnavailableError);
      assert.match(error.message, /^Cannot write to .+: .*full/);
      assert.equal(store.fault, error);
      return true;
    });
    assert.equal(show(store.get('pods', 'a')), 'a@1: 1 one');
    assert.equal(store.revision, 1);
    assert.equal(replay(store, 0).length, 1);
  },

  async 'fails all writes in flight and builds on durable state again'(bed) {
    const store = await bed.open();
    await put(store, 'a', 'one');
    await put(store, 'b');
    const seen: string[] = [];
    store.watch({ collection: 'pods', since: 2 }, (events) => seen.push(...events.map(showEvent)));
    await bed.failWrites();
    const first = put(store, 'a', LARGE_TEXT);
    const writes = [first, put(store, 'a'), remove(store, 'b'), put(store, 'c')];
    const results = await Promise.allSettled(writes);
    assert.ok(results.every(({ status }) => status === 'rejected'));
    assert.equal(store.latest('pods', 'a')?.revision, 1);
    assert.equal(store.latest('pods', 'b')?.revision, 2);
    assert.equal(store.latest('pods', 'c'), undefined);
    assert.deepEqual(seen, []);
  },

  async 'succeeds again when there is space, and never reuses a failed revision'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    await bed.failWrites();
    for (let i = 0; i < 3; i++) await assert.rejects(put(store, 'a', LARGE_TEXT), StoreUnavailableError);
    await bed.repair();
    assert.ok(store.fault, 'the fault stays until a write succeeds');
    const entry = await put(store, 'a', LARGE_TEXT);
    assert.ok(entry.revision > 2, 'revision 2 failed');
    assert.equal(store.fault, undefined);
    assert.equal(store.revision, entry.revision);
    assert.deepEqual(replay(store, 0).map(showEvent), ['put a@1 was nothing', `put a@${entry.revision} was 1`]);
    assert.deepEqual(
      store.list('pods', { atRevision: 2 }).entries.map(({ revision }) => revision),
      [1],
    );
  },

  async 'has after a restart everything that was acknowledged and nothing that failed'(bed) {
    const before = await bed.open();
    await put(before, 'a', 'one');
    await bed.failWrites();
    await assert.rejects(Promise.all([put(before, 'a', LARGE_TEXT), put(before, 'b')]), StoreUnavailableError);
    await bed.repair();
    const after = await bed.open();
    assert.deepEqual(after.list('pods').entries.map(show), ['a@1: 1 one']);
    assert.equal(after.fault, undefined);
    await put(after, 'a', LARGE_TEXT);
  },

  async 'compacts later what it could not compact while writes failed'(bed) {
    const options = { maxHistoryEvents: 8 };
    const before = await bed.open(options);
    for (let i = 0; i < 8; i++) await put(before, 'a', LARGE_TEXT);
    await bed.failWrites();
    for (let i = 0; i < 4; i++) await Promise.allSettled([put(before, `b-${i}`, LARGE_TEXT)]);
    await bed.repair();
    for (let i = 0; i < 30; i++) await put(before, 'a');
    const expected = replay(before, before.compactedRevision).map(showEvent);
    const after = await bed.open(options);
    assert.deepEqual(replay(after, after.compactedRevision).map(showEvent), expected);
    assert.equal(show(after.get('pods', 'a')), show(before.get('pods', 'a')));
  },
};
