/** Repeatable randomness: each test prints its seed, and SELFSAME_TEST_SEED sets it. */
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** Returns a number from 0 (included) to 1 (not included), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Returns an integer; both bounds are included. */
  between(least: number, most: number): number {
    return least + Math.floor(this.next() * (most - least + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.between(0, items.length - 1)]!;
  }
}

/**
 * Creates the generator. `fixedSeed` is the seed of ordinary runs, whose result must depend only on the code. Full runs
 * and tests without it use a random seed.
 */
export function createSeededRandom(t: TestContext, { fixedSeed }: { readonly fixedSeed?: number } = {}): SeededRandom {
  const given = process.env['SELFSAME_TEST_SEED'];
  const defaultSeed = FULL_RUN ? undefined : fixedSeed;
  const seed = given === undefined ? (defaultSeed ?? randomInt(2 ** 31)) : Number(given);
  t.diagnostic(`seed ${seed}`);
  return new SeededRandom(seed);
}
