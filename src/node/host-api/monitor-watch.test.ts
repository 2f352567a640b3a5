import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FakeClock } from '#client/testing/fake-clock.ts';
import { ANSWER_MS, FRESH_MS, MonitorWatch } from '#node/host-api/monitor-watch.ts';

/** Monitors that answer, but for those that are mute: they let the time of a question pass, as QEMU's client does. */
function scene() {
  const clock = new FakeClock();
  const mute = new Set<string>();
  const asked: string[] = [];
  const ping = (id: string, { timeoutMs }: { readonly timeoutMs: number }) => {
    asked.push(id);
    if (!mute.has(id)) return Promise.resolve();
    return new Promise<void>((_, reject) => void clock.after(timeoutMs, () => reject(new Error('no answer'))));
  };
  return { clock, mute, asked, watch: new MonitorWatch({ hypervisor: { ping }, clock }) };
}

test('tells who answers and who does not, and waits no longer than it says', async () => {
  const { watch, mute, clock } = scene();
  mute.add('b');
  const answering = watch.answering(['a', 'b']);
  await clock.advance(ANSWER_MS);
  assert.deepEqual([...(await answering)], ['a']);
});

test('one that answers again is told as such', async () => {
  const { watch, mute, clock } = scene();
  mute.add('a');
  const first = watch.answering(['a']);
  await clock.advance(ANSWER_MS);
  assert.deepEqual([...(await first)], []);
  mute.clear();
  await clock.advance(FRESH_MS);
  assert.deepEqual([...(await watch.answering(['a']))], ['a']);
});

test('many who ask at once, or soon after each other, cost one question', async () => {
  const { watch, asked, clock } = scene();
  await Promise.all([watch.answering(['a']), watch.answering(['a'])]);
  await clock.advance(FRESH_MS - 1);
  await watch.answering(['a']);
  assert.deepEqual(asked, ['a']);
  await clock.advance(1);
  await watch.answering(['a']);
  assert.deepEqual(asked, ['a', 'a']);
});

test('a question that nobody has answered yet is not asked again', async () => {
  const { watch, mute, asked, clock } = scene();
  mute.add('a');
  const first = watch.answering(['a']);
  await clock.advance(ANSWER_MS - 1);
  const second = watch.answering(['a']);
  await clock.advance(1);
  assert.deepEqual([(await first).size, (await second).size, asked.length], [0, 0, 1]);
});

test('guests that are gone are forgotten', async () => {
  const { watch, asked } = scene();
  await watch.answering(['a']);
  await watch.answering([]);
  await watch.answering(['a']);
  assert.deepEqual(asked, ['a', 'a']);
});
