import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { EventSignal, pollOnEvents } from '#node/hypervisor/qemu/monitor/event-signal.ts';

test('queries again at once after an event during a query', async () => {
  const [clock, events] = [new FakeClock(), new EventSignal()];
  let queries = 0;
  const found = await pollOnEvents({ clock, events }, { timeoutMs: 1000, everyMs: 1000 }, async () => {
    queries++;
    if (queries === 1) events.notify();
    return queries === 2 ? 'found' : undefined;
  });
  assert.equal(found, 'found');
});

test('queries at the interval without events, until the timeout', async () => {
  const [clock, events] = [new FakeClock(), new EventSignal()];
  let queries = 0;
  const waiting = pollOnEvents({ clock, events }, { timeoutMs: 300, everyMs: 100 }, async () => void queries++);
  for (let i = 0; i < 4; i++) await clock.advance(100);
  assert.equal(await waiting, undefined);
  assert.equal(queries, 4);
});

test('stops when the signal aborts', async () => {
  const [clock, events, abort] = [new FakeClock(), new EventSignal(), new AbortController()];
  const options = { timeoutMs: Number.POSITIVE_INFINITY, everyMs: 100, signal: abort.signal };
  const waiting = assert.rejects(
    pollOnEvents({ clock, events }, options, async () => undefined),
    /enough/,
  );
  abort.abort(new Error('enough'));
  await waiting;
});
