import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { runInSlices, runIndivisible, type Units } from '#cel/limits/slices.ts';

const SLICE = 200_000;

function* work<T>(pieces: readonly Units[], result: T, onPiece: () => void = () => {}): Generator<Units, T> {
  for (const units of pieces) {
    onPiece();
    yield units;
  }
  return result;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

// The units of one test must not count in the turn of the next one.
beforeEach(async () => {
  await nextTurn();
  await nextTurn();
});

test('cheap work completes synchronously', () => {
  assert.equal(runInSlices(work([10, 10], 'done')), 'done');
});

test('expensive work continues in later turns', async () => {
  let pieces = 0;
  const result = runInSlices(work([SLICE, SLICE, SLICE], 'done', () => pieces++));
  assert.ok(result instanceof Promise);
  assert.equal(pieces, 1);
  await nextTurn();
  assert.equal(pieces, 2);
  assert.equal(await result, 'done');
  assert.equal(pieces, 3);
});

test('concurrent expensive requests share one turn', async () => {
  const order: string[] = [];
  const run = (name: string) => runInSlices(work([SLICE, SLICE], name, () => order.push(name)));
  const all = Promise.all(['a', 'b', 'c'].map((name) => Promise.resolve(run(name))));
  assert.deepEqual(order, ['a']);
  const perTurn: number[] = [];
  while (order.length < 6) {
    const before = order.length;
    await nextTurn();
    perTurn.push(order.length - before);
  }
  assert.ok(
    perTurn.every((count) => count <= 1),
    perTurn.join(' '),
  );
  assert.deepEqual(await all, ['a', 'b', 'c']);
});

test('cheap requests do not wait for expensive ones', async () => {
  const ended: string[] = [];
  const run = (name: string, pieces: readonly Units[]) =>
    Promise.resolve(runInSlices(work(pieces, name))).then((result) => ended.push(result));
  const dear = [1, 2, 3].map((i) =>
    run(
      `dear ${i}`,
      Array.from({ length: 10 }, () => SLICE),
    ),
  );
  await Promise.all([...dear, run('cheap', [1])]);
  assert.equal(ended[0], 'cheap');
});

test('an error is thrown, synchronously or later', async () => {
  function* failing(units: Units): Generator<Units, never> {
    yield units;
    throw new Error('broken');
  }
  assert.throws(() => runInSlices(failing(1)), /broken/);
  await assert.rejects(async () => runInSlices(failing(SLICE)), /broken/);
});

test('indivisible work gets a turn of its own', async () => {
  let isDone = false;
  const result = runInSlices(runIndivisible(SLICE, () => (isDone = true)));
  assert.equal(isDone, false);
  assert.equal(await result, true);
});
