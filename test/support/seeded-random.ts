/** Randomness that a failed test can be repeated with: the seed is printed, and SELFSAME_TEST_SEED sets it. */
import { randomInt } from 'node:crypto';
import type { TestContext } from 'node:test';
import { FULL_RUN } from '#test/support/full-run.ts';

export class SeededRandom {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  /** A whole number, both ends included. */
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

/** `everyRun`: the seed of those runs that are to tell of a change, not of luck; with SELFSAME_TEST_FULL it is random, too. */
export function seededRandom(t: TestContext, { everyRun }: { readonly everyRun?: number } = {}): SeededRandom {
  const given = process.env['SELFSAME_TEST_SEED'];
  const usual = FULL_RUN ? undefined : everyRun;
  const seed = given === undefined ? (usual ?? randomInt(2 ** 31)) : Number(given);
  t.diagnostic(`seed ${seed}`);
  return new SeededRandom(seed);
}
