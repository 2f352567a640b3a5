import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SOLUTIONS } from './guards.ts';
import { ROUNDS, solutionOrder } from './turns.ts';

const rounds = Array.from({ length: ROUNDS }, (_, round) => solutionOrder(round));

test('each solution has one turn in each round', () => {
  for (const turns of rounds) assert.deepEqual([...turns].sort(), [...SOLUTIONS].sort());
});

test('each solution follows every other one equally often, also between rounds, and never itself', () => {
  const turns = [...rounds.flat(), ...solutionOrder(ROUNDS)];
  const successions = turns.slice(0, -SOLUTIONS.length).map((solution, at) => `${turns[at + 1]} after ${solution}`);
  const counts = Map.groupBy(successions, (pair) => pair);
  assert.equal(counts.size, SOLUTIONS.length * (SOLUTIONS.length - 1));
  assert.deepEqual(new Set([...counts.values()].map(({ length }) => length)), new Set([8]));
  for (const solution of SOLUTIONS) assert.ok(!counts.has(`${solution} after ${solution}`));
});
