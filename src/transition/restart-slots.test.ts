import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RestartSlots } from '#transition/restart-slots.ts';

test('the limit is never exceeded, and waiting indexes are served in order', () => {
  const slots = new RestartSlots(2, []);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map((index) => slots.take(index)),
    [true, true, false, false, false],
  );
  assert.deepEqual(slots.offerFreeSlots(), []);
  slots.release(1);
  assert.deepEqual(slots.offerFreeSlots(), [3]);
  assert.deepEqual(slots.offerFreeSlots(), [], 'an offered slot is reserved');
  assert.equal(slots.take(4), false);
  assert.equal(slots.take(3), true);
  assert.equal(slots.take(3), true, 'taking a slot again changes nothing');
});

test('a released offer goes to the next index', () => {
  const slots = new RestartSlots(1, [7]);
  for (const index of [8, 9]) slots.take(index);
  slots.release(7);
  assert.deepEqual(slots.offerFreeSlots(), [8]);
  slots.release(8);
  assert.deepEqual(slots.offerFreeSlots(), [9]);
});

test('slots of an earlier process count, even if the limit is lower now', () => {
  const slots = new RestartSlots(1, [1, 2]);
  assert.equal(slots.take(3), false);
  slots.release(1);
  assert.deepEqual(slots.offerFreeSlots(), []);
  slots.release(2);
  assert.deepEqual(slots.offerFreeSlots(), [3]);
});
