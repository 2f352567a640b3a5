/** The results of the type check for each node of an expression: its type, and the overloads of each call. */
import type { CallExpr, Expr } from '#cel/ast.ts';
import type { Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';

interface ResolvedCall {
  /** The full name, with the namespace: `ip.isCanonical`. */
  readonly name: string;
  readonly member: boolean;
  readonly overloads: readonly Overload[];
}

export interface CheckedTree {
  readonly tree: Expr;
  typeOf(expr: Expr): CelType;
  /** Returns undefined for an optional selection, which is not a function. */
  callOf(expr: CallExpr): ResolvedCall | undefined;
}

/** Filled by the checker. A recorded type may contain type parameters that are bound later; `resolve` replaces them. */
export class Annotations implements CheckedTree {
  readonly tree: Expr;
  readonly #types = new Map<Expr, CelType>();
  readonly #calls = new Map<Expr, ResolvedCall>();
  readonly #resolve: (type: CelType) => CelType;

  constructor(tree: Expr, resolve: (type: CelType) => CelType) {
    this.tree = tree;
    this.#resolve = resolve;
  }

  setType(expr: Expr, type: CelType): void {
    this.#types.set(expr, type);
  }

  setCall(expr: Expr, call: ResolvedCall): void {
    this.#calls.set(expr, call);
  }

  typeOf(expr: Expr): CelType {
    return this.#resolve(this.#types.get(expr)!);
  }

  callOf(expr: CallExpr): ResolvedCall | undefined {
    return this.#calls.get(expr);
  }
}
