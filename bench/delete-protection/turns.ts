/**
 * The order of the solutions. A delete leaves work behind that slows down the next one, so each solution must follow
 * every other one equally often, also from one round to the next. Pure.
 */
import { SOLUTIONS, type Solution } from './guards.ts';

/** A Latin square in which each number follows every other one once; only between rows some pairs are more frequent. */
const SQUARE = [
  [0, 1, 3, 2],
  [1, 2, 0, 3],
  [2, 3, 1, 0],
  [3, 0, 2, 1],
];
/** Permutations of the numbers that balance the pairs between rows as well. */
const PERMUTATIONS = [
  [0, 1, 2, 3],
  [0, 1, 3, 2],
  [0, 2, 1, 3],
  [0, 2, 3, 1],
  [0, 3, 1, 2],
  [0, 3, 2, 1],
];

const TURNS = PERMUTATIONS.flatMap((permutation) =>
  SQUARE.map((row) => row.map((number) => SOLUTIONS[permutation[number]!]!)),
);

/** The number of rounds after which the order repeats. */
export const ROUNDS = TURNS.length;

export function solutionOrder(round: number): readonly Solution[] {
  return TURNS[round % ROUNDS]!;
}
