/** Conformance: put, delete, writes in flight, limits, reached, close. */
import assert from 'node:assert/strict';
import type { Cases } from '#engine/store/testing/conformance.ts';
import { RevisionConflictError, StoreOverloadedError, StoreUnavailableError } from '#engine/store/store.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { put, remove, show } from '#engine/store/testing/test-bed.ts';

const never = new AbortController().signal;

function create(store: Store, id: string, bytes: Buffer | (() => Buffer)): Promise<Entry> {
  const encode = typeof bytes === 'function' ? bytes : () => bytes;
  return store.put({ collection: 'pods', id, expected: 0, encode });
}

async function conflictOf(write: Promise<Entry>): Promise<RevisionConflictError> {
  const error = await write.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert(error instanceof RevisionConflictError, `expected a conflict, got ${String(error)}`);
  return error;
}

export const writeCases: Cases = {
  async 'counts revisions from 1, over all collections'(bed) {
    const store = await bed.open();
    assert.equal(store.revision, 0);
    assert.equal(show(await put(store, 'a', 'first')), 'a@1: 1 first');
    assert.equal(show(await put(store, 'a', 'other', 'nodes')), 'a@2: 2 other');
    assert.equal(store.revision, 2);
    assert.equal(show(store.get('pods', 'a')), 'a@1: 1 first');
    assert.equal(show(store.get('nodes', 'a')), 'a@2: 2 other');
  },

  async 'creates only entries that do not exist'(bed) {
    const store = await bed.open();
    const first = await put(store, 'a');
    const conflict = await conflictOf(create(store, 'a', Buffer.from('again')));
    assert.equal(conflict.current, first);
    assert.equal(store.revision, 1);
  },

  async 'replaces and deletes only the expected revision'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    const second = await put(store, 'a');
    const stale = { collection: 'pods', id: 'a', expected: 1, encode: () => assert.fail('must not be called') };
    assert.equal((await conflictOf(store.put(stale))).current, second);
    assert.equal((await conflictOf(store.delete(stale))).current, second);
    assert.equal((await conflictOf(store.put({ ...stale, id: 'b' }))).current, undefined);
    assert.equal(store.get('pods', 'a'), second);
  },

  async 'deletes only entries that exist'(bed) {
    const store = await bed.open();
    const missing = { collection: 'pods', id: 'a', expected: 0, encode: () => assert.fail('must not be called') };
    assert.equal((await conflictOf(store.delete(missing))).current, undefined);
  },

  async 'assigns a delete its own revision and last state, and accepts the id again afterwards'(bed) {
    const store = await bed.open();
    await put(store, 'a');
    assert.equal(show(await remove(store, 'a', 'last')), 'a@2: 2 last');
    assert.equal(store.get('pods', 'a'), undefined);
    assert.equal(store.latest('pods', 'a'), undefined);
    assert.equal(store.count('pods'), 0);
    assert.equal((await create(store, 'a', Buffer.from('new'))).revision, 3);
  },

  async 'fails only the write whose encode throws, and uses no revision for it'(bed) {
    const store = await bed.open();
    const before = put(store, 'a');
    const broken = create(store, 'b', () => {
      throw new TypeError('no bytes');
    });
    const after = put(store, 'c');
    await assert.rejects(broken, TypeError);
    assert.deepEqual([(await before).revision, (await after).revision], [1, 2]);
    assert.equal(store.latest('pods', 'b'), undefined);
  },

  async 'shows writes in flight to latest only'(bed) {
    const store = await bed.open();
    await put(store, 'gone');
    const writes = [put(store, 'a', 'new'), remove(store, 'gone')];
    assert.equal(show(store.latest('pods', 'a')), 'a@2: 2 new');
    assert.equal(store.latest('pods', 'gone'), undefined);
    assert.equal(store.get('pods', 'a'), undefined);
    assert.equal(store.get('pods', 'gone')?.revision, 1);
    assert.equal(store.list('pods').revision, 1);
    assert.equal(store.count('pods'), 1);
    assert.equal(store.revision, 1);
    await Promise.all(writes);
    assert.equal(show(store.get('pods', 'a')), 'a@2: 2 new');
    assert.equal(store.get('pods', 'gone'), undefined);
    assert.equal(store.revision, 3);
  },

  async 'lists the latest versions with writes in flight'(bed) {
    const store = await bed.open();
    await Promise.all([put(store, 'n/gone'), put(store, 'n/kept'), put(store, 'other/x')]);
    const shown = () =>
      store
        .listLatest('pods', 'n/')
        .map(({ id }) => id)
        .sort();
    const writes = [put(store, 'n/new'), put(store, 'n/kept', 'again'), remove(store, 'n/gone'), put(store, 'other/y')];
    assert.deepEqual(shown(), ['n/kept', 'n/new']);
    await Promise.all(writes);
    assert.deepEqual(shown(), ['n/kept', 'n/new']);
    assert.deepEqual(store.listLatest('none', ''), []);
  },

  async 'builds on writes in flight'(bed) {
    const store = await bed.open();
    const writes = [put(store, 'a'), put(store, 'a'), remove(store, 'a'), put(store, 'a', 'end')];
    const conflict = await conflictOf(create(store, 'a', Buffer.from('')));
    assert.equal(conflict.current?.revision, 4);
    assert.deepEqual(
      (await Promise.all(writes)).map(({ revision }) => revision),
      [1, 2, 3, 4],
    );
    assert.equal(show(store.get('pods', 'a')), 'a@4: 4 end');
  },

  async 'acknowledges in revision order, after the watchers were called'(bed) {
    const store = await bed.open();
    const order: string[] = [];
    store.watch({ collection: 'pods', since: 0 }, (events) => {
      for (const { entry } of events) {
        assert.equal(store.get('pods', entry.id), entry);
        order.push(`seen ${entry.revision}`);
      }
    });
    const acknowledge = ({ revision }: Entry): void => {
      assert.ok(order.includes(`seen ${revision}`));
      order.push(`done ${revision}`);
    };
    await Promise.all(['a', 'b', 'c'].map((id) => put(store, id).then(acknowledge)));
    assert.deepEqual(
      order.filter((step) => step.startsWith('done')),
      ['done 1', 'done 2', 'done 3'],
    );
  },

  async 'rejects more writes in flight than allowed, and accepts them later'(bed) {
    const store = await bed.open({ maxOpsInFlight: 2 });
    const writes = [put(store, 'a'), put(store, 'b')];
    await assert.rejects(put(store, 'c'), StoreOverloadedError);
    await Promise.all(writes);
    assert.equal((await put(store, 'c')).revision, 3);
  },

  async 'rejects more bytes in flight than allowed, but accepts a single large write'(bed) {
    const store = await bed.open({ maxBytesInFlight: 10 });
    const large = create(store, 'a', Buffer.alloc(100));
    await assert.rejects(put(store, 'b'), StoreOverloadedError);
    await large;
    assert.equal((await put(store, 'b')).revision, 2);
  },

  async 'waits for a revision until it is durable'(bed) {
    const store = await bed.open();
    const reached = store.reached(2, { signal: never });
    const writes = [put(store, 'a'), put(store, 'b')];
    assert.equal(await reached, true);
    assert.ok(store.revision >= 2);
    assert.equal(await store.reached(1, { signal: never }), true);
    await Promise.all(writes);
  },

  async 'stops waiting for a revision when the signal aborts or the store closes'(bed) {
    const store = await bed.open();
    const controller = new AbortController();
    const waiting = store.reached(1, { signal: controller.signal });
    const other = store.reached(1, { signal: never });
    controller.abort();
    assert.equal(await waiting, false);
    assert.equal(await store.reached(1, { signal: controller.signal }), false);
    await store.close();
    assert.equal(await other, false);
    assert.equal(await store.reached(1, { signal: never }), false);
  },

  async 'finishes writes in flight when closed, and accepts no more'(bed) {
    const store = await bed.open();
    const write = put(store, 'a');
    const closing = store.close();
    await assert.rejects(put(store, 'b'), StoreUnavailableError);
    await closing;
    assert.equal((await write).revision, 1);
    await store.close();
    assert.equal(show((await bed.open()).get('pods', 'a')), 'a@1: 1 ');
  },
};
