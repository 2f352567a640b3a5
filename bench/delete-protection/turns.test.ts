import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SOLUTIONS } from './guards.ts';
import { ROUNDS, turnsOf } from './turns.ts';

const rounds = Array.from({ length: ROUNDS }, (_, round) => turnsOf(round));

test('in each round each solution has one turn', () => {
  for (const turns of rounds) assert.deepEqual([...turns].sort(), [...SOLUTIONS].sort());
});

test('each solution follows each other equally often, also from round to round, and never itself', () => {
  const turns = [...rounds.flat(), ...turnsOf(ROUNDS)];
  const followed = turns.slice(0, -SOLUTIONS.length).map((solution, at) => `${turns[at + 1]} after ${solution}`);
  const counts = Map.groupBy(followed, (pair) => pair);
  assert.equal(counts.size, SOLUTIONS.length * (SOLUTIONS.length - 1));
  assert.deepEqual(new Set([...counts.values()].map(({ length }) => length)), new Set([8]));
  for (const solution of SOLUTIONS) assert.ok(!counts.has(`${solution} after ${solution}`));
});
