import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FlowBudget } from '#node/hypervisor/qemu/guest-io/flow-budget.ts';

const LIMITS = { chunksPerSecond: 10, bytesPerSecond: 1000, burstSeconds: 2 };

test('a burst is free, and a flood of small chunks waits for each', () => {
  const budget = new FlowBudget(LIMITS, 0);
  const waits = Array.from({ length: 22 }, () => budget.take(1, 0));
  assert.deepEqual(waits.slice(0, 20), Array(20).fill(0));
  assert.deepEqual(waits.slice(20), [100, 200]);
});

test('large chunks wait according to their size', () => {
  const budget = new FlowBudget(LIMITS, 0);
  assert.equal(budget.take(2000, 0), 0);
  assert.equal(budget.take(500, 0), 500);
  assert.equal(budget.take(0, 500), 0);
});

test('a quiet time restores no more than a burst', () => {
  const budget = new FlowBudget(LIMITS, 0);
  for (let i = 0; i < 20; i++) budget.take(1, 0);
  assert.equal(budget.take(2100, 3_600_000), 100);
});
