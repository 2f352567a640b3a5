import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { inSlices, uncut, type Units } from '#engine/admission/expressions/slices.ts';

const SLICE = 200_000;

function* work<T>(pieces: readonly Units[], result: T, onPiece: () => void = () => {}): Generator<Units, T> {
  for (const units of pieces) {
    onPiece();
    yield units;
  }
  return result;
}

const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

// What one test has spent must not count in the turn of the next one.
beforeEach(async () => {
  await nextTurn();
  await nextTurn();
});

test('what is cheap is done at once', () => {
  assert.equal(inSlices(work([10, 10], 'done')), 'done');
});

test('what is dear goes on in later turns', async () => {
  let pieces = 0;
  const result = inSlices(work([SLICE, SLICE, SLICE], 'done', () => pieces++));
  assert.ok(result instanceof Promise);
  assert.equal(pieces, 1);
  await nextTurn();
  assert.equal(pieces, 2);
  assert.equal(await result, 'done');
  assert.equal(pieces, 3);
});

test('dear requests at the same time share one turn', async () => {
  const order: string[] = [];
  const run = (name: string) => inSlices(work([SLICE, SLICE], name, () => order.push(name)));
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

test('cheap requests do not stand in line behind dear ones', async () => {
  const ended: string[] = [];
  const run = (name: string, pieces: readonly Units[]) =>
    Promise.resolve(inSlices(work(pieces, name))).then((result) => ended.push(result));
  const dear = [1, 2, 3].map((i) =>
    run(
      `dear ${i}`,
      Array.from({ length: 10 }, () => SLICE),
    ),
  );
  await Promise.all([...dear, run('cheap', [1])]);
  assert.equal(ended[0], 'cheap');
});

test('an error is thrown, at once or later', async () => {
  function* failing(units: Units): Generator<Units, never> {
    yield units;
    throw new Error('broken');
  }
  assert.throws(() => inSlices(failing(1)), /broken/);
  await assert.rejects(async () => inSlices(failing(SLICE)), /broken/);
});

test('what cannot be cut has a turn of its own', async () => {
  let isDone = false;
  const result = inSlices(uncut(SLICE, () => (isDone = true)));
  assert.equal(isDone, false);
  assert.equal(await result, true);
});
