/** What the check found out about each part of an expression, for whoever looks at the tree afterwards. */
import type { CallExpr, Expr } from '#cel/ast.ts';
import type { Overload } from '#cel/library.ts';
import type { CelType } from '#cel/type.ts';

export interface ResolvedCall {
  /** With its namespace: `ip.isCanonical`. */
  readonly name: string;
  readonly member: boolean;
  readonly overloads: readonly Overload[];
}

export interface CheckedTree {
  readonly tree: Expr;
  typeOf(expr: Expr): CelType;
  /** undefined = an optional selection, which no function does. */
  callOf(expr: CallExpr): ResolvedCall | undefined;
}

/** Filled by the checker as it goes. Types may stand for others that are known only at the end: `resolve` tells. */
export class Annotations implements CheckedTree {
  readonly tree: Expr;
  readonly #types = new Map<Expr, CelType>();
  readonly #calls = new Map<Expr, ResolvedCall>();
  readonly #resolve: (type: CelType) => CelType;

  constructor(tree: Expr, resolve: (type: CelType) => CelType) {
    this.tree = tree;
    this.#resolve = resolve;
  }

  noteType(expr: Expr, type: CelType): void {
    this.#types.set(expr, type);
  }

  noteCall(expr: Expr, call: ResolvedCall): void {
    this.#calls.set(expr, call);
  }

  typeOf(expr: Expr): CelType {
    return this.#resolve(this.#types.get(expr)!);
  }

  callOf(expr: CallExpr): ResolvedCall | undefined {
    return this.#calls.get(expr);
  }
}
