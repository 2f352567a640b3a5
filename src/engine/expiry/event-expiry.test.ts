import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { decodeStored, encodeStored } from '#engine/encoding/stored-object.ts';
import { startEventExpiry } from '#engine/expiry/event-expiry.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { Store } from '#engine/store/store.ts';
import { timestamp } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';

const MINUTE = 60_000;
const TTL = 60 * MINUTE;

async function startScene(t: TestContext) {
  const clock = new FakeClock();
  const store = await openMemoryStore();
  t.after(() => store.close());
  const start = () => {
    const stop = startEventExpiry({ store, clock, log: silentLog, ttlMs: TTL });
    t.after(stop);
    return stop;
  };
  return { clock, store, start };
}

async function write(store: Store, id: string, time: number): Promise<void> {
  const [namespace = '', name = ''] = id.split('/');
  const metadata = { namespace, name, uid: id, creationTimestamp: timestamp(time) };
  const object = { apiVersion: 'v1', kind: 'Event', metadata, reason: 'Started' };
  const expected = store.latest('events', id)?.revision ?? 0;
  await store.put({ collection: 'events', id, expected, encode: (revision) => encodeStored(object, revision) });
}

const names = (store: Store) => store.list('events').entries.map(({ id }) => id);

test('an Event expires an hour after its last write, and watches see its last state', async (t) => {
  const { clock, store, start } = await startScene(t);
  start();
  await write(store, 'default/once', clock.now());
  await write(store, 'default/again', clock.now());
  const deleted: string[] = [];
  store.watch({ collection: 'events', since: store.revision }, (events) => {
    for (const { type, entry } of events) {
      if (type === 'delete') deleted.push(`${String(decodeStored(entry.bytes)['reason'])} ${entry.id}`);
    }
  });
  await clock.advance(40 * MINUTE);
  await write(store, 'default/again', clock.now());
  await clock.advance(19 * MINUTE);
  assert.deepEqual(names(store), ['default/again', 'default/once']);
  await clock.advance(2 * MINUTE);
  assert.deepEqual(names(store), ['default/again']);
  await clock.advance(40 * MINUTE);
  assert.deepEqual(names(store), []);
  assert.deepEqual(deleted, ['Started default/once', 'Started default/again']);
});

test('Events of an earlier run expire by the time that is stored in them', async (t) => {
  const { clock, store, start } = await startScene(t);
  await write(store, 'default/new', clock.now() - 10 * MINUTE);
  await write(store, 'default/old', clock.now() - 55 * MINUTE);
  await write(store, 'default/future', clock.now() + 1000 * MINUTE);
  start();
  await clock.advance(6 * MINUTE);
  assert.deepEqual(names(store), ['default/future', 'default/new']);
  await clock.advance(45 * MINUTE);
  assert.deepEqual(names(store), ['default/future']);
  await clock.advance(10 * MINUTE);
  assert.deepEqual(names(store), [], 'a time in the future counts as now');
});

test('thousands of Events expire in one check', async (t) => {
  const { clock, store, start } = await startScene(t);
  start();
  await Promise.all(Array.from({ length: 2000 }, (_, n) => write(store, `default/e${n}`, clock.now())));
  await clock.advance(61 * MINUTE);
  for (let turn = 0; turn < 1000 && store.count('events') > 0; turn++) await setImmediate();
  assert.equal(store.count('events'), 0);
});

test('a change of the system time expires nothing', async (t) => {
  const { clock, store, start } = await startScene(t);
  start();
  await write(store, 'default/e', clock.now());
  clock.setWallClockBy(1000 * TTL);
  await clock.advance(MINUTE);
  assert.deepEqual(names(store), ['default/e']);
});

test('other kinds stay, and nothing expires after the stop', async (t) => {
  const { clock, store, start } = await startScene(t);
  const stop = start();
  await write(store, 'default/e', clock.now());
  stop();
  await clock.advance(100 * MINUTE);
  assert.deepEqual(names(store), ['default/e']);
  assert.equal(clock.pendingTimers, 0);
});
