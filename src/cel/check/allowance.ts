/**
 * What the check of an expression may take. Types can double with each step of an expression, and literals are tried
 * out (a regular expression is compiled): so the work is bounded, not the size. One allowance serves one expression, or
 * all expressions that are compiled at one go.
 */
import { Budget } from '#cel/budget.ts';

/** Measured: about 10 ms. */
const STEPS = 40_000;
const TRIAL_UNITS = 200_000;

export class TypeTooComplexError extends Error {
  override name = 'TypeTooComplexError';
}

export class CheckAllowance {
  /** For trying literals out. What is too dear to try is left to the evaluation. */
  readonly trials: Budget;
  #steps: number;

  /** `times` what one expression may take. */
  constructor(times = 1) {
    this.trials = new Budget(TRIAL_UNITS * times);
    this.#steps = STEPS * times;
  }

  get isSpent(): boolean {
    return this.#steps <= 0;
  }

  /** Throws TypeTooComplexError. */
  step(): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new TypeTooComplexError();
  }
}
