/**
 * The budget for checking expressions. Types can double in size with each step of an expression, and the checker
 * evaluates literals (it compiles regular expressions, for example). Therefore the work is bounded, not the size of the
 * source. One budget covers one expression, or all expressions that are compiled together.
 */
import { Budget } from '#cel/limits/budget.ts';

/** Takes about 10 ms (measured). */
const STEPS = 40_000;
const LITERAL_UNITS = 200_000;

export class TypeTooComplexError extends Error {
  override name = 'TypeTooComplexError';
}

export class CheckBudget {
  /** The cost budget for evaluating literals. Once it is spent, invalid literals are found during evaluation only. */
  readonly literals: Budget;
  #steps: number;

  /** Creates a budget for this many expressions. */
  constructor(times = 1) {
    this.literals = new Budget(LITERAL_UNITS * times);
    this.#steps = STEPS * times;
  }

  get isSpent(): boolean {
    return this.#steps <= 0;
  }

  /** Throws TypeTooComplexError if the budget is exceeded. */
  step(): void {
    this.#steps -= 1;
    if (this.#steps < 0) throw new TypeTooComplexError();
  }
}
