import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { ANSWER_MS, FRESH_MS, MonitorProbe } from '#node/host-api/monitor-probe.ts';

/** Monitors that answer, except for those in `mute`, whose pings reject after the timeout, as in QEMU's client. */
function scene() {
  const clock = new FakeClock();
  const mute = new Set<string>();
  const pinged: string[] = [];
  const ping = (id: string, { timeoutMs }: { readonly timeoutMs: number }) => {
    pinged.push(id);
    if (!mute.has(id)) return Promise.resolve();
    return new Promise<void>((_, reject) => void clock.after(timeoutMs, () => reject(new Error('no answer'))));
  };
  return { clock, mute, pinged, probe: new MonitorProbe({ hypervisor: { ping }, clock }) };
}

test('reports which monitors answer, and waits no longer than ANSWER_MS', async () => {
  const { probe, mute, clock } = scene();
  mute.add('b');
  const answering = probe.findAnswering(['a', 'b']);
  await clock.advance(ANSWER_MS);
  assert.deepEqual([...(await answering)], ['a']);
});

test('reports a monitor that answers again', async () => {
  const { probe, mute, clock } = scene();
  mute.add('a');
  const first = probe.findAnswering(['a']);
  await clock.advance(ANSWER_MS);
  assert.deepEqual([...(await first)], []);
  mute.clear();
  await clock.advance(FRESH_MS);
  assert.deepEqual([...(await probe.findAnswering(['a']))], ['a']);
});

test('concurrent calls, and calls in quick succession, share one ping', async () => {
  const { probe, pinged, clock } = scene();
  await Promise.all([probe.findAnswering(['a']), probe.findAnswering(['a'])]);
  await clock.advance(FRESH_MS - 1);
  await probe.findAnswering(['a']);
  assert.deepEqual(pinged, ['a']);
  await clock.advance(1);
  await probe.findAnswering(['a']);
  assert.deepEqual(pinged, ['a', 'a']);
});

test('does not send a second ping while one is under way', async () => {
  const { probe, mute, pinged, clock } = scene();
  mute.add('a');
  const first = probe.findAnswering(['a']);
  await clock.advance(ANSWER_MS - 1);
  const second = probe.findAnswering(['a']);
  await clock.advance(1);
  assert.deepEqual([(await first).size, (await second).size, pinged.length], [0, 0, 1]);
});

test('forgets guests that are not named any more', async () => {
  const { probe, pinged } = scene();
  await probe.findAnswering(['a']);
  await probe.findAnswering([]);
  await probe.findAnswering(['a']);
  assert.deepEqual(pinged, ['a', 'a']);
});
