/** What several expressions may spend together, and each of them at most. */
import { Budget, CostLimitError } from '#cel/budget.ts';
import { CelFault, type CelValue } from '#cel/value.ts';
import { CALL_UNITS } from '#engine/admission/expressions/cost.ts';

/** No units are left. No value of CEL is a symbol. */
export const SPENT = Symbol('spent');

/** What Kubernetes says then. */
export const OUT_OF_BUDGET =
  'validation failed due to running out of cost budget, no further validation rules will be run';

export type Evaluated = CelValue | CelFault | typeof SPENT;

export class Purse {
  #left: number;
  /** What the last run has cost. */
  spent = 0;

  constructor(units: number) {
    this.#left = units;
  }

  /** SPENT = the purse is empty; an expression that is too dear by itself is a fault. */
  run(evaluate: (budget: Budget) => CelValue | CelFault): Evaluated {
    const allowed = Math.min(CALL_UNITS, this.#left);
    const budget = new Budget(allowed);
    try {
      const result = evaluate(budget);
      this.#pay(allowed - budget.left);
      return result;
    } catch (error) {
      if (!(error instanceof CostLimitError)) throw error;
      this.#pay(allowed);
      return this.#left <= 0 ? SPENT : new CelFault(error.message);
    }
  }

  #pay(units: number): void {
    this.spent = units;
    this.#left -= units;
  }
}
