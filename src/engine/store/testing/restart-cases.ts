/** Conformance: state after a restart, with and without compaction. */
import assert from 'node:assert/strict';
import type { Cases } from '#engine/store/testing/conformance.ts';
import { RevisionGoneError } from '#engine/store/store.ts';
import type { Store } from '#engine/store/store.ts';
import { put, remove, replay, show, showEvent } from '#engine/store/testing/test-bed.ts';

async function change(store: Store, times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    await put(store, `id-${i % 5}`, `round ${i}`);
    if (i % 7 === 6) await remove(store, `id-${i % 5}`, 'end');
  }
}

/** Returns everything that is visible in a store: events with their bytes, and lists at every kept revision. */
function snapshot(store: Store): unknown {
  const lists = [];
  for (let atRevision = store.compactedRevision; atRevision <= store.revision; atRevision++) {
    lists.push(store.list('pods', { atRevision }).entries.map(show));
  }
  const events = replay(store, store.compactedRevision).map((event) => [
    showEvent(event),
    event.entry.bytes.toString(),
    event.previous?.bytes.toString(),
  ]);
  return { revision: store.revision, compactedRevision: store.compactedRevision, lists, events };
}

export const restartCases: Cases = {
  async 'keeps everything: state, revisions, watches and lists of the past'(bed) {
    const before = await bed.open();
    await change(before, 30);
    const expected = snapshot(before);
    assert.deepEqual(snapshot(await bed.open()), expected);
  },

  async 'keeps everything that was not compacted'(bed) {
    const options = { maxHistoryEvents: 16 };
    const before = await bed.open(options);
    await change(before, 60);
    assert.ok(before.compactedRevision > 30);
    const expected = snapshot(before);
    const after = await bed.open(options);
    assert.deepEqual(snapshot(after), expected);
    assert.throws(() => replay(after, after.compactedRevision - 1), RevisionGoneError);
  },

  async 'drops history when the limits are smaller than before'(bed) {
    const before = await bed.open();
    await change(before, 30);
    const { entries, revision } = before.list('pods');
    const expected = entries.map(show);
    const after = await bed.open({ maxHistoryEvents: 4 });
    assert.ok(after.compactedRevision >= revision - 4);
    assert.deepEqual(after.list('pods').entries.map(show), expected);
    const again = await bed.open();
    assert.equal(again.compactedRevision, after.compactedRevision);
    assert.deepEqual(again.list('pods').entries.map(show), expected);
  },

  async 'continues the revisions, even if nothing is left'(bed) {
    const options = { maxHistoryEvents: 0 };
    const before = await bed.open(options);
    await put(before, 'a');
    await remove(before, 'a');
    const after = await bed.open(options);
    assert.deepEqual(after.list('pods'), { entries: [], revision: 2, remaining: 0 });
    assert.equal(after.compactedRevision, 2);
    assert.equal((await put(after, 'b')).revision, 3);
  },

  async 'does not restore entries that were deleted long ago'(bed) {
    const options = { maxHistoryEvents: 4 };
    const before = await bed.open(options);
    await put(before, 'a');
    await put(before, 'a');
    await remove(before, 'a');
    for (let i = 0; i < 20; i++) await put(before, 'b');
    const after = await bed.open(options);
    assert.deepEqual(after.list('pods').entries.map(show), ['b@23: 23 ']);
    assert.equal((await put(after, 'a')).revision, 24);
  },

  async 'keeps large, small, empty and arbitrary bytes'(bed) {
    const values = [0, 1, 4095, 500_000, 3_000_000].map((size) => Buffer.alloc(size, 0xc3));
    const before = await bed.open();
    await Promise.all(
      values.map((bytes, i) => before.put({ collection: 'pöds', id: `ü/${i}`, expected: 0, encode: () => bytes })),
    );
    const after = await bed.open();
    const { entries } = after.list('pöds', { prefix: 'ü/' });
    assert.deepEqual(
      entries.map(({ bytes }) => values.findIndex((value) => value.equals(bytes))),
      [0, 1, 2, 3, 4],
    );
  },
};
