/** A cost budget that several expressions share, with a limit for each of them. */
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { CelFault, type CelValue } from '#cel/value.ts';
import { CALL_UNITS } from '#cel/limits/cost.ts';

/** The result if the budget is spent. No CEL value is a symbol. */
export const SPENT = Symbol('spent');

/** Kubernetes' message for a spent budget. */
export const OUT_OF_BUDGET =
  'validation failed due to running out of cost budget, no further validation rules will be run';

export type EvaluationResult = CelValue | CelFault | typeof SPENT;

export class CostBudget {
  #remaining: number;
  /** Cost of the last run. */
  spent = 0;

  constructor(units: number) {
    this.#remaining = units;
  }

  /** Returns SPENT if the budget is spent. An expression that exceeds its own limit returns a CelFault. */
  run(evaluate: (budget: Budget) => CelValue | CelFault): EvaluationResult {
    const allowed = Math.min(CALL_UNITS, this.#remaining);
    const budget = new Budget(allowed);
    try {
      const result = evaluate(budget);
      this.#charge(allowed - budget.left);
      return result;
    } catch (error) {
      if (!(error instanceof CostLimitError)) throw error;
      this.#charge(allowed);
      return this.#remaining <= 0 ? SPENT : new CelFault(error.message);
    }
  }

  #charge(units: number): void {
    this.spent = units;
    this.#remaining -= units;
  }
}
