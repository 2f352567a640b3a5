/**
 * Whose turn it is. A delete leaves work behind, which falls into the turn of whoever comes next: so each solution must
 * follow each other equally often, also from one round to the next. Pure.
 */
import { SOLUTIONS, type Solution } from './guards.ts';

/** A Latin square in which each number follows each other once; only from row to row some do more often. */
const SQUARE = [
  [0, 1, 3, 2],
  [1, 2, 0, 3],
  [2, 3, 1, 0],
  [3, 0, 2, 1],
];
/** Under these other names for the same numbers, that evens out, too. */
const NAMES = [
  [0, 1, 2, 3],
  [0, 1, 3, 2],
  [0, 2, 1, 3],
  [0, 2, 3, 1],
  [0, 3, 1, 2],
  [0, 3, 2, 1],
];

const TURNS = NAMES.flatMap((names) => SQUARE.map((row) => row.map((number) => SOLUTIONS[names[number]!]!)));

/** After so many rounds they begin anew. */
export const ROUNDS = TURNS.length;

export function turnsOf(round: number): readonly Solution[] {
  return TURNS[round % ROUNDS]!;
}
