/**
 * A cost budget that several expressions share, with a limit for each of them, and Kubernetes' limits for the expressions
 * of rules, policies and webhooks. A unit takes well below a tenth of a microsecond here.
 */
import { Budget, CostLimitError } from '#cel/limits/budget.ts';
import { CelFault, type CelValue } from '#cel/value.ts';

/** Limit for one expression, including the variables that it uses. */
const CALL_UNITS = 1_000_000;
/** Limit for all expressions of a policy under one binding. */
export const POLICY_UNITS = 10_000_000;
/** Limit for all match conditions of a webhook or policy. */
export const MATCH_UNITS = 2_500_000;

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
