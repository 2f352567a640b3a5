/** The run-time form of a tree: each node is a closure (EvaluationStep) over the closures of its parts. */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/limits/budget.ts';
import type { Activation } from '#cel/environment.ts';
import type { Environment } from '#cel/environment.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

export type StepResult = CelValue | CelFault;
export type EvaluationStep = (frame: EvaluationFrame) => StepResult;

/** The state of one evaluation. */
export class EvaluationFrame {
  readonly activation: Activation;
  readonly budget: Budget;
  /** The variables of the running folds, indexed by SlotScope.slot. */
  readonly slots: StepResult[] = [];

  constructor(activation: Activation, budget: Budget) {
    this.activation = activation;
    this.budget = budget;
  }
}

/**
 * A variable of an enclosing fold, linked to the outer ones. A variable does not outlive its fold, so its slot is its
 * depth.
 */
export class SlotScope {
  readonly slot: number;
  readonly #name: string;
  readonly #outer: SlotScope | undefined;

  constructor(name: string, outer: SlotScope | undefined) {
    this.slot = outer === undefined ? 0 : outer.slot + 1;
    this.#name = name;
    this.#outer = outer;
  }

  static slotOf(name: string, scope: SlotScope | undefined): number | undefined {
    for (let inner = scope; inner !== undefined; inner = inner.#outer) {
      if (inner.#name === name) return inner.slot;
    }
    return undefined;
  }
}

/** Gives the parts of the planner access to each other. */
export interface Planner {
  readonly environment: Environment;
  plan(expr: Expr, scope: SlotScope | undefined): EvaluationStep;
}
