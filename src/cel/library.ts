/**
 * A CEL library. Each function has its types (for the checker) and its implementation (for the evaluator) in one value.
 */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/limits/budget.ts';
import type { CelType, OpaqueType } from '#cel/type.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

export interface Overload {
  /** The name in cel-go or Kubernetes: `string_contains_string`. */
  readonly id: string;
  /** True for `first.f(rest)`, false for `f(first, rest)`. */
  readonly member: boolean;
  /** Starts with the receiver. */
  readonly args: readonly CelType[];
  readonly result: CelType;
  /**
   * Called with values that match `args` (any value for dyn or a parameter). Must charge the budget in advance for work
   * that grows with the arguments; the call itself is already charged.
   */
  call(args: readonly CelValue[], budget: Budget): CelValue | CelFault;
  /**
   * Called once per place of a call, with the arguments that are constant there (undefined for others). The returned
   * function replaces `call`, for example with a compiled pattern. Returns undefined if there is nothing to prepare.
   */
  prepare?(constants: readonly (CelValue | undefined)[]): Overload['call'] | undefined;
}

export interface MacroCall {
  /** The offset of the macro in the source. */
  readonly at: number;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

export interface Macro {
  readonly name: string;
  readonly member: boolean;
  /** The number of arguments. */
  readonly arity: number;
  /** Returns undefined if the call is an ordinary call. Throws CelSyntaxError for invalid arguments. */
  expand(call: MacroCall): Expr | undefined;
}

export interface Library {
  /** Overloads of a function are tried in this order. Several libraries can add overloads to one name. */
  readonly functions?: Readonly<Record<string, readonly Overload[]>>;
  readonly macros?: readonly Macro[];
  /** Types that expressions can name: `type(x) == net.IP`. */
  readonly types?: readonly OpaqueType[];
}
