import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchSequencer } from '#engine/handlers/watch/watch-sequencer.ts';
import { MAX_WATCH_BUFFER_BYTES } from '#engine/request/limits.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';

const entry = (id: string, bytes = 1): Entry => ({ id, revision: 1, bytes: Buffer.alloc(bytes) }) as Entry;
const event = (id: string, bytes?: number): StoreEvent => ({ type: 'put', entry: entry(id, bytes) }) as StoreEvent;

function scene() {
  const waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const events: string[] = [];
  const turns = new WatchSequencer({
    prepare([first]) {
      if (first === undefined || !first.id.startsWith('slow')) return undefined;
      return new Promise((resolve, reject) => waiting.set(first.id, { resolve, reject }));
    },
    onOverflow: () => events.push('too much'),
    onFailure: (error) => events.push(`failed: ${(error as Error).message}`),
  });
  const run = (id: string) => turns.run([entry(id)], () => events.push(id));
  return { turns, waiting, events, run };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('a step without preparation runs at once', () => {
  const { events, run, turns } = scene();
  run('a');
  run('b');
  assert.deepEqual([events, turns.idle], [['a', 'b'], true]);
});

test('a step waits for previous steps', async () => {
  const { events, run, waiting, turns } = scene();
  run('slow 1');
  run('slow 2');
  run('quick');
  waiting.get('slow 2')!.resolve();
  await settle();
  assert.deepEqual([events, turns.idle], [[], false]);
  waiting.get('slow 1')!.resolve();
  await settle();
  assert.deepEqual([events, turns.idle], [['slow 1', 'slow 2', 'quick'], true]);
});

test('no step runs after a failure', async () => {
  const { events, run, waiting } = scene();
  run('slow 1');
  run('quick');
  waiting.get('slow 1')!.reject(new Error('broken'));
  await settle();
  assert.deepEqual(events, ['failed: broken']);
});

test('no step runs after stop', async () => {
  const { events, run, waiting, turns } = scene();
  run('slow 1');
  turns.stop();
  waiting.get('slow 1')!.resolve();
  await settle();
  assert.deepEqual(events, []);
});

test('no step runs after a failure, even without preparation', async () => {
  const { events, run, waiting } = scene();
  run('slow 1');
  waiting.get('slow 1')!.reject(new Error('broken'));
  await settle();
  run('quick');
  assert.deepEqual(events, ['failed: broken']);
});

test('no failure is reported after stop', async () => {
  const { events, run, waiting, turns } = scene();
  run('slow 1');
  turns.stop();
  waiting.get('slow 1')!.reject(new Error('canceled'));
  await settle();
  assert.deepEqual(events, []);
});

test('pending steps are bounded', () => {
  const { events, turns } = scene();
  turns.runAll([event('slow 1', MAX_WATCH_BUFFER_BYTES)], true, () => events.push('live'));
  assert.equal(events.length, 0);
  turns.runAll([event('slow 2', 1)], true, () => events.push('live'));
  assert.deepEqual(events, ['too much']);
});
