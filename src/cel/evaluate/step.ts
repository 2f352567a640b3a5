/** What a node of the tree becomes: a closure over its parts. And what it is run with. */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/budget.ts';
import type { Activation } from '#cel/compile.ts';
import type { Environment } from '#cel/environment.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

export type Outcome = CelValue | CelFault;
export type Step = (frame: Frame) => Outcome;

/** One evaluation. */
export class Frame {
  readonly activation: Activation;
  readonly budget: Budget;
  /** The variables of the folds that are running, each at its place (Scope). */
  readonly slots: Outcome[] = [];

  constructor(activation: Activation, budget: Budget) {
    this.activation = activation;
    this.budget = budget;
  }
}

/** The variables of the folds around a node. Nothing outlives its fold, so a place is its depth. */
export class Scope {
  readonly slot: number;
  readonly #name: string;
  readonly #outer: Scope | undefined;

  constructor(name: string, outer: Scope | undefined) {
    this.slot = outer === undefined ? 0 : outer.slot + 1;
    this.#name = name;
    this.#outer = outer;
  }

  static slotOf(name: string, scope: Scope | undefined): number | undefined {
    for (let inner = scope; inner !== undefined; inner = inner.#outer) {
      if (inner.#name === name) return inner.slot;
    }
    return undefined;
  }
}

/** How the parts of a planner reach each other. */
export interface Planner {
  readonly environment: Environment;
  plan(expr: Expr, scope: Scope | undefined): Step;
}
