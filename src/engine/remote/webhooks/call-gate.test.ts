import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TooManyCalls } from '#engine/remote/webhooks/call-failure.ts';
import { CallGate } from '#engine/remote/webhooks/call-gate.ts';

/** A gate with calls that end on demand. */
function aGate() {
  const gate = new CallGate({ running: 2, waiting: 2 });
  const started: number[] = [];
  const ends = new Map<number, () => void>();
  const enter = (id: number, signal = new AbortController().signal) =>
    gate.run(
      () => {
        started.push(id);
        return new Promise<number>((resolve) => ends.set(id, () => resolve(id)));
      },
      { signal },
    );
  return { started, enter, end: (id: number) => ends.get(id)?.() };
}

test('calls above the limit wait and run in order', async () => {
  const { started, enter, end } = aGate();
  const calls = [1, 2, 3, 4].map((id) => enter(id));
  assert.deepEqual(started, [1, 2]);
  end(2);
  await calls[1];
  assert.deepEqual(started, [1, 2, 3]);
  end(1);
  await calls[0];
  assert.deepEqual(started, [1, 2, 3, 4]);
  end(3);
  end(4);
  assert.deepEqual(await Promise.all(calls), [1, 2, 3, 4]);
  // Both slots are free again.
  const later = [enter(5), enter(6)];
  assert.deepEqual(started.slice(-2), [5, 6]);
  for (const id of [5, 6]) end(id);
  await Promise.all(later);
});

test('calls above the queue limit are refused at once', async () => {
  const { started, enter, end } = aGate();
  const calls = [1, 2, 3, 4].map((id) => enter(id));
  await assert.rejects(enter(5), TooManyCalls);
  for (const id of [1, 2]) end(id);
  await Promise.all(calls.slice(0, 2));
  for (const id of [3, 4]) end(id);
  await Promise.all(calls);
  assert.deepEqual(started, [1, 2, 3, 4]);
});

test('an aborted waiting call leaves the queue', async () => {
  const { started, enter, end } = aGate();
  const calls = [enter(1), enter(2)];
  const impatient = new AbortController();
  const third = enter(3, impatient.signal);
  const fourth = enter(4);
  impatient.abort(new Error('enough'));
  await assert.rejects(third, /enough/);
  end(1);
  await calls[0];
  assert.deepEqual(started, [1, 2, 4]);
  end(2);
  end(4);
  await Promise.all([calls[1], fourth]);
  // Both slots are free again.
  const later = [enter(5), enter(6)];
  assert.deepEqual(started.slice(-2), [5, 6]);
  for (const id of [5, 6]) end(id);
  await Promise.all(later);
});

test('a failed call frees its slot', async () => {
  const gate = new CallGate({ running: 1, waiting: 0 });
  const { signal } = new AbortController();
  await assert.rejects(
    gate.run(() => Promise.reject(new Error('broken')), { signal }),
    /broken/,
  );
  assert.equal(await gate.run(() => Promise.resolve('next'), { signal }), 'next');
});
