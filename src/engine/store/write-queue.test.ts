import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogRecord } from '#engine/store/journal.ts';
import { WriteQueue } from '#engine/store/write-queue.ts';

const LIMITS = { maxOps: 100, maxBytes: 1000 };

/** A journal whose appends end when the test resolves them. */
function heldJournal(): {
  batches: number[][];
  finish: () => void;
  append: (b: readonly LogRecord[]) => Promise<void>;
} {
  const batches: number[][] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  return {
    batches,
    finish: resolve,
    append(batch) {
      batches.push(batch.map(({ entry }) => entry.revision));
      return promise;
    },
  };
}

function write(
  id: string,
  bytes = Buffer.from('x'),
): { collection: string; id: string; expected: number; encode: () => Buffer } {
  return { collection: 'pods', id, expected: 0, encode: () => bytes };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('commits simultaneous writes in one batch, and collects the next batch while one is at the journal', async () => {
  const journal = heldJournal();
  const committed: number[][] = [];
  const queue = new WriteQueue(journal, {
    limits: LIMITS,
    lastRevision: 0,
    committed: (batch) => committed.push(batch.map(({ entry }) => entry.revision)),
  });
  const writes = ['a', 'b', 'c'].map((id) => queue.submit('put', write(id)));
  await turn();
  writes.push(queue.submit('put', write('d')));
  await turn();
  writes.push(queue.submit('put', write('e')));
  await turn();
  assert.deepEqual(journal.batches, [[1, 2, 3]]);
  assert.equal(queue.latest('pods', 'd')?.entry.revision, 4);
  journal.finish();
  await Promise.all([...writes, queue.drain()]);
  assert.deepEqual(journal.batches, [
    [1, 2, 3],
    [4, 5],
  ]);
  assert.deepEqual(committed, journal.batches);
  assert.equal(queue.latest('pods', 'd'), undefined);
});

test('never appends a second batch before the first settled, even if a commit causes writes', async () => {
  let running = 0;
  const queue = new WriteQueue(
    {
      async append() {
        assert.equal(++running, 1);
        await turn();
        await turn();
        running--;
      },
    },
    {
      limits: LIMITS,
      lastRevision: 0,
      committed: (batch) => {
        if (batch[0]!.entry.revision < 20) void queue.submit('put', write('b'));
      },
    },
  );
  for (let i = 0; i < 40; i++) {
    void queue.submit('put', write('a'));
    await turn();
  }
  await queue.drain();
  assert.equal(queue.latest('pods', 'a'), undefined);
});

test('keeps no buffer that is larger than the stored bytes', async () => {
  const queue = new WriteQueue(heldJournal(), { limits: LIMITS, lastRevision: 0, committed: () => {} });
  const pool = Buffer.alloc(8192, 'x');
  void queue.submit('put', write('a', pool.subarray(100, 110)));
  const stored = queue.latest('pods', 'a')!.entry.bytes;
  assert.equal(stored.toString(), 'xxxxxxxxxx');
  assert.equal(stored.buffer.byteLength, 10);
});
