import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Clock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { renewOnRead, renewWeekly } from '#lib/renewals.ts';

const DAY = 24 * 3_600_000;

/** A clock that advances only when a test says so. */
class ManualClock implements Clock {
  #ms = 0;
  readonly timers = new Map<() => void, number>();
  now = () => this.#ms;
  elapsed = () => this.#ms;

  after(ms: number, fn: () => void): () => void {
    this.timers.set(fn, this.#ms + ms);
    return () => void this.timers.delete(fn);
  }

  async days(count: number): Promise<void> {
    for (let day = 0; day < count; day++) {
      this.#ms += DAY;
      for (const [fn, atMs] of [...this.timers]) if (atMs <= this.#ms && this.timers.delete(fn)) fn();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
}

test('renews once a week until it is stopped, also after a failure', async () => {
  const clock = new ManualClock();
  let count = 0;
  const end = renewWeekly(
    async () => {
      count++;
      if (count === 2) throw new Error('the disk is full');
    },
    { clock, log: silentLog },
  );
  await clock.days(6);
  assert.equal(count, 0);
  await clock.days(16);
  assert.equal(count, 3);
  await end();
  await clock.days(30);
  assert.deepEqual([count, clock.timers.size], [3, 0]);
});

test('returns the same value for a week and then a new one', async () => {
  const clock = new ManualClock();
  const get = renewOnRead(() => ({}), clock);
  const first = get();
  await clock.days(6);
  assert.equal(get(), first);
  await clock.days(2);
  assert.notEqual(get(), first);
  assert.equal(get(), get());
});
