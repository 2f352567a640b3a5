import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { Bell, pollOnEvents } from './bell.ts';

test('queries again at once after an event during a query', async () => {
  const [clock, bell] = [new FakeClock(), new Bell()];
  let queries = 0;
  const found = await pollOnEvents({ clock, bell }, { timeoutMs: 1000, everyMs: 1000 }, async () => {
    queries++;
    if (queries === 1) bell.notify();
    return queries === 2 ? 'found' : undefined;
  });
  assert.equal(found, 'found');
});

test('queries at the interval without events, until the timeout', async () => {
  const [clock, bell] = [new FakeClock(), new Bell()];
  let queries = 0;
  const waiting = pollOnEvents({ clock, bell }, { timeoutMs: 300, everyMs: 100 }, async () => void queries++);
  for (let i = 0; i < 4; i++) await clock.advance(100);
  assert.equal(await waiting, undefined);
  assert.equal(queries, 4);
});

test('stops when the signal aborts', async () => {
  const [clock, bell, abort] = [new FakeClock(), new Bell(), new AbortController()];
  const options = { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 100, signal: abort.signal };
  const waiting = assert.rejects(
    pollOnEvents({ clock, bell }, options, async () => undefined),
    /enough/,
  );
  abort.abort(new Error('enough'));
  await waiting;
});
