import assert from 'node:assert/strict';
import { test } from 'node:test';
import { BodyMemory, ASSURED_BYTES } from '#engine/http/body-memory.ts';

const MIB = 1024 * 1024;

test('the bodies of one user are bounded, and leave room for others', () => {
  const budget = new BodyMemory();
  const first = budget.open('a');
  assert.equal(first.add(32 * MIB), true);
  assert.equal(first.add(1), false);
  assert.equal(budget.open('a').add(1), false);
  assert.equal(budget.open('b').add(MIB), true);
  first.close();
  first.close();
  assert.equal(budget.open('a').add(32 * MIB), true);
});

test('all bodies together are bounded', () => {
  const budget = new BodyMemory();
  for (let user = 0; user < 16; user++) assert.equal(budget.open(`u${user}`).add(32 * MIB), true);
  assert.equal(budget.open('another').add(MIB), false);
});

test('each user has room for small bodies when there is none for large ones', () => {
  const budget = new BodyMemory();
  for (let user = 0; user < 16; user++) budget.open(`u${user}`).add(32 * MIB);
  const heartbeat = budget.open('node');
  assert.equal(heartbeat.add(ASSURED_BYTES), true);
  assert.equal(heartbeat.add(1), false);
  assert.equal(budget.open('u1').add(1), false);
  heartbeat.close();
  assert.equal(budget.open('node').add(ASSURED_BYTES), true);
});
