import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartSlots } from '#transition/restart-slots.ts';

test('no more than the limit hold one; who waits is called in turn', () => {
  const slots = new RestartSlots(2, []);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((index) => slots.take(index)),
    [true, true, false, false, false],
  );
  assert.deepEqual(slots.call(), []);
  slots.release(1);
  assert.deepEqual(slots.call(), [3]);
  assert.deepEqual(slots.call(), [], 'the slot is kept for who was called');
  assert.equal(slots.take(4), false);
  assert.equal(slots.take(3), true);
  assert.equal(slots.take(3), true, 'once more changes nothing');
});

test('who was called and needs none makes room for the next', () => {
  const slots = new RestartSlots(1, [7]);
  for (const index of [8, 9]) slots.take(index);
  slots.release(7);
  assert.deepEqual(slots.call(), [8]);
  slots.release(8);
  assert.deepEqual(slots.call(), [9]);
});

test('those from before count, also where the limit is lower now', () => {
  const slots = new RestartSlots(1, [1, 2]);
  assert.equal(slots.take(3), false);
  slots.release(1);
  assert.deepEqual(slots.call(), []);
  slots.release(2);
  assert.deepEqual(slots.call(), [3]);
});
