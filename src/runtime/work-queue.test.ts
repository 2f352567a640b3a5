import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FakeClock, settle } from '#lib/testing/fake-clock.ts';
import { WorkQueue } from '#runtime/work-queue.ts';
import type { QueueMetrics, WorkQueueOptions, WorkResult } from '#runtime/work-queue.ts';

/** A queue whose work ends when the test says so. */
function setUp(options: Partial<WorkQueueOptions> = {}) {
  const clock = new FakeClock();
  const started: string[] = [];
  const errors: string[] = [];
  const open = new Map<string, { resolve(result?: WorkResult): void; reject(error: Error): void }>();
  const queue = new WorkQueue({
    clock,
    work: (key) => {
      assert.ok(!open.has(key), `${key} is running twice at the same time`);
      started.push(key);
      return new Promise((resolve, reject) => open.set(key, { resolve, reject }));
    },
    onError: (key, error, { failures, delayMs }) =>
      errors.push(`${key} ${(error as Error).message} ${failures} ${delayMs}`),
    ...options,
  });
  const end = async (key: string, result?: WorkResult): Promise<void> => {
    const run = open.get(key);
    assert.ok(run, `${key} is running`);
    open.delete(key);
    run.resolve(result);
    await settle();
  };
  const fail = async (key: string): Promise<void> => {
    const run = open.get(key);
    assert.ok(run, `${key} is running`);
    open.delete(key);
    run.reject(new Error('boom'));
    await settle();
  };
  return { clock, queue, started, errors, end, fail, open };
}

type World = ReturnType<typeof setUp>;

const cases: Record<
  string,
  { options?: Partial<WorkQueueOptions>; run(world: World): Promise<void>; started: string[] }
> = {
  'processes a key once that was added twice': {
    async run({ queue, end }) {
      for (const key of ['a', 'b', 'b', 'b', 'a']) queue.add(key);
      await settle();
      queue.add('b');
      await end('a');
      await end('b');
    },
    started: ['a', 'b'],
  },
  'processes a key again that was added while it was running': {
    async run({ queue, end, started }) {
      queue.add('a');
      await settle();
      queue.add('a');
      queue.add('a');
      assert.deepEqual(started, ['a']);
      await end('a');
      await end('a');
    },
    started: ['a', 'a'],
  },
  'limits the number of running keys': {
    options: { concurrency: 2 },
    async run({ queue, end, open }) {
      for (const key of ['a', 'b', 'c', 'd']) queue.add(key);
      await settle();
      assert.deepEqual([...open.keys()], ['a', 'b']);
      assert.equal(queue.depth, 2);
      await end('b');
      assert.deepEqual([...open.keys()], ['a', 'c']);
    },
    started: ['a', 'b', 'c'],
  },
  'processes a delayed key in time, at the earlier of two times': {
    async run({ queue, clock, started }) {
      queue.addAfter('a', 5000);
      queue.addAfter('a', 1000);
      queue.addAfter('a', 3000);
      assert.equal(queue.delayed, 1);
      await clock.advance(999);
      assert.deepEqual(started, []);
      await clock.advance(10_000);
    },
    started: ['a'],
  },
  'processes a key again later if its work requests it': {
    async run({ queue, clock, end }) {
      queue.add('a');
      await settle();
      await end('a', { afterMs: 60_000 });
      await clock.advance(60_000);
    },
    started: ['a', 'a'],
  },
  'waits after a retry as after a failure, without an error': {
    async run({ queue, clock, end, errors, started }) {
      queue.add('a');
      await settle();
      await end('a', { retry: true });
      assert.deepEqual([started.length, errors.length], [1, 0]);
      await clock.advance(5);
      await end('a', { retry: true });
      await clock.advance(9);
      assert.equal(started.length, 2);
      await clock.advance(1);
    },
    started: ['a', 'a', 'a'],
  },
  'discards times requested before a successful run': {
    async run({ queue, clock, end }) {
      queue.addAfter('a', 1000);
      queue.addAfter('b', 1000);
      queue.add('a');
      queue.add('b');
      await settle();
      await end('a');
      await end('b', { afterMs: 5000 });
      assert.equal(queue.delayed, 1);
      await clock.advance(4999);
      assert.equal(queue.delayed, 1);
      await clock.advance(1);
    },
    started: ['a', 'b', 'b'],
  },
  'keeps a time that is requested during the run': {
    async run({ queue, clock, end }) {
      queue.add('a');
      await settle();
      queue.addAfter('a', 1000);
      await end('a');
      await clock.advance(1000);
    },
    started: ['a', 'a'],
  },
  'keeps an earlier time after a failed run': {
    options: { backoff: { firstMs: 10_000, maxMs: 10_000 } },
    async run({ queue, clock, end, fail, errors }) {
      queue.addAfter('a', 1000);
      queue.add('a');
      await settle();
      await fail('a');
      await clock.advance(1000);
      await end('a', { failed: new Error('boom'), afterMs: 300 });
      await clock.advance(300);
      assert.deepEqual(errors, ['a boom 1 10000', 'a boom 2 300']);
    },
    started: ['a', 'a', 'a'],
  },
  'waits after a failed run that requests to run again at once': {
    options: { backoff: { firstMs: 10, maxMs: 10 } },
    async run({ queue, clock, end, started }) {
      queue.add('a');
      await settle();
      await end('a', { failed: new Error('boom'), afterMs: 0 });
      assert.equal(started.length, 1);
      await clock.advance(10);
    },
    started: ['a', 'a'],
  },
  'starts nothing after shutdown, including delayed keys': {
    async run({ queue, clock, end }) {
      queue.add('a');
      queue.add('b');
      queue.addAfter('c', 10);
      await settle();
      const done = queue.shutdown();
      queue.add('d');
      queue.addAfter('e', 1);
      await end('a', { afterMs: 1 });
      await done;
      await clock.advance(1000);
    },
    started: ['a'],
  },
  'completes the ready keys if it is drained': {
    async run({ queue, end }) {
      queue.add('a');
      queue.add('b');
      await settle();
      const done = queue.shutdown({ drain: true });
      queue.add('c');
      await end('a');
      await end('b');
      await done;
    },
    started: ['a', 'b'],
  },
};

for (const [sentence, { options, run, started }] of Object.entries(cases)) {
  test(`queue: ${sentence}`, async () => {
    const world = setUp(options);
    await run(world);
    await settle();
    assert.deepEqual(world.started, started);
  });
}

test('delays a failing key more and more, up to the limit, and resets the delay after a success', async () => {
  const { queue, clock, errors, fail, end, started } = setUp({ backoff: { firstMs: 100, maxMs: 400 } });
  queue.add('a');
  await settle();
  for (const delay of [100, 200, 400, 400]) {
    await fail('a');
    await clock.advance(delay - 1);
    assert.equal(errors.length, started.length, 'not before the delay');
    await clock.advance(1);
  }
  assert.deepEqual(errors, ['a boom 1 100', 'a boom 2 200', 'a boom 3 400', 'a boom 4 400']);
  await end('a');
  queue.add('a');
  await settle();
  await fail('a');
  assert.equal(errors.at(-1), 'a boom 1 100');
  queue.add('b');
  await settle();
  await end('b');
});

test('an error that work throws synchronously affects only its key', async () => {
  const errors: string[] = [];
  const queue = new WorkQueue({
    clock: new FakeClock(),
    work: (key) => {
      if (key === 'bad') throw new Error('boom');
      return Promise.resolve();
    },
    onError: (key) => errors.push(key),
  });
  queue.add('bad');
  queue.add('good');
  await queue.idle();
  assert.deepEqual(errors, ['bad']);
});

test('reports depth, retries and durations to the metrics', async () => {
  const depths: number[] = [];
  const worked: string[] = [];
  let retries = 0;
  const metrics: QueueMetrics = {
    setDepth: (count: number) => depths.push(count),
    recordRetry: () => retries++,
    recordRun: (ms: number, outcome: string) => worked.push(`${outcome} ${ms}`),
  };
  const { queue, clock, fail, end } = setUp({ metrics });
  queue.add('a');
  queue.add('b');
  await clock.advance(7);
  await fail('a');
  await end('b');
  assert.equal(Math.max(...depths), 2);
  assert.equal(depths.at(-1), 0);
  assert.equal(retries, 1);
  assert.deepEqual(worked, ['failed 7', 'done 0']);
});

test('keeps a time that is requested again during the run', async () => {
  const { queue, clock, end, started } = setUp();
  queue.add('a');
  queue.addAfter('a', 1000);
  await clock.advance(0);
  queue.addAfter('a', 2000);
  await end('a');
  await clock.advance(1000);
  assert.deepEqual(started, ['a', 'a']);
  await end('a');
});

test('never loses an added key and never runs a key twice at the same time', async () => {
  const key = fc.constantFrom('a', 'b', 'c');
  const step = fc.oneof(
    fc.record({ do: fc.constant('add' as const), key }),
    fc.record({ do: fc.constant('later' as const), key, ms: fc.integer({ min: 0, max: 50 }) }),
    fc.record({ do: fc.constantFrom('end' as const, 'fail' as const), key }),
    fc.record({ do: fc.constant('advance' as const), ms: fc.integer({ min: 0, max: 30 }) }),
  );
  const script = fc.array(step, { maxLength: 50 });
  await fc.assert(
    fc.asyncProperty(script, fc.integer({ min: 1, max: 3 }), async (steps, concurrency) => {
      const { queue, clock, open, end, fail, started } = setUp({ concurrency });
      /** Keys that must still be started. */
      const owed = new Set<string>();
      let seen = 0;
      const startedSince = (): void => {
        for (const name of started.slice(seen)) owed.delete(name);
        seen = started.length;
      };
      for (const next of steps) {
        if (next.do === 'add' || next.do === 'later') {
          startedSince();
          owed.add(next.key);
          if (next.do === 'add') queue.add(next.key);
          else queue.addAfter(next.key, next.ms);
        } else if (next.do === 'advance') await clock.advance(next.ms);
        else if (open.has(next.key)) await (next.do === 'end' ? end(next.key) : fail(next.key));
        assert.ok(open.size <= concurrency);
      }
      for (let round = 0; round < 30; round++) {
        await clock.advance(100);
        for (const name of [...open.keys()]) await end(name);
      }
      startedSince();
      assert.deepEqual([...owed], []);
      await queue.idle();
    }),
    { numRuns: 100 },
  );
});
