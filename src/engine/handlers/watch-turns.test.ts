import assert from 'node:assert/strict';
import { test } from 'node:test';
import { WatchTurns } from '#engine/handlers/watch-turns.ts';
import { MAX_WATCH_BUFFER_BYTES } from '#engine/limits.ts';
import type { Entry, StoreEvent } from '#engine/store/store.ts';

const entry = (id: string, bytes = 1): Entry => ({ id, revision: 1, bytes: Buffer.alloc(bytes) }) as Entry;
const event = (id: string, bytes?: number): StoreEvent => ({ type: 'put', entry: entry(id, bytes) }) as StoreEvent;

function scene() {
  const waiting = new Map<string, { resolve: () => void; reject: (error: Error) => void }>();
  const said: string[] = [];
  const turns = new WatchTurns({
    prepare([first]) {
      if (first === undefined || !first.id.startsWith('slow')) return undefined;
      return new Promise((resolve, reject) => waiting.set(first.id, { resolve, reject }));
    },
    tooMuch: () => said.push('too much'),
    failed: (error) => said.push(`failed: ${(error as Error).message}`),
  });
  const run = (id: string) => turns.run([entry(id)], () => said.push(id));
  return { turns, waiting, said, run };
}

const settle = () => new Promise((resolve) => setImmediate(resolve));

test('what need not wait runs at once', () => {
  const { said, run, turns } = scene();
  run('a');
  run('b');
  assert.deepEqual([said, turns.idle], [['a', 'b'], true]);
});

test('everything waits for what came before it', async () => {
  const { said, run, waiting, turns } = scene();
  run('slow 1');
  run('slow 2');
  run('quick');
  waiting.get('slow 2')!.resolve();
  await settle();
  assert.deepEqual([said, turns.idle], [[], false]);
  waiting.get('slow 1')!.resolve();
  await settle();
  assert.deepEqual([said, turns.idle], [['slow 1', 'slow 2', 'quick'], true]);
});

test('nothing follows a failure', async () => {
  const { said, run, waiting } = scene();
  run('slow 1');
  run('quick');
  waiting.get('slow 1')!.reject(new Error('broken'));
  await settle();
  assert.deepEqual(said, ['failed: broken']);
});

test('nothing follows the end', async () => {
  const { said, run, waiting, turns } = scene();
  run('slow 1');
  turns.stop();
  waiting.get('slow 1')!.resolve();
  await settle();
  assert.deepEqual(said, []);
});

test('nothing follows a failure, though it need not wait', async () => {
  const { said, run, waiting } = scene();
  run('slow 1');
  waiting.get('slow 1')!.reject(new Error('broken'));
  await settle();
  run('quick');
  assert.deepEqual(said, ['failed: broken']);
});

test('who has left is told of no failure', async () => {
  const { said, run, waiting, turns } = scene();
  run('slow 1');
  turns.stop();
  waiting.get('slow 1')!.reject(new Error('canceled'));
  await settle();
  assert.deepEqual(said, []);
});

test('what waits is bounded', () => {
  const { said, turns } = scene();
  turns.runAll([event('slow 1', MAX_WATCH_BUFFER_BYTES)], true, () => said.push('live'));
  assert.equal(said.length, 0);
  turns.runAll([event('slow 2', 1)], true, () => said.push('live'));
  assert.deepEqual(said, ['too much']);
});
