/** A library of CEL: functions with their types (for the checker) and their work (for the evaluator), in one value. */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/budget.ts';
import type { CelType, OpaqueType } from '#cel/type.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

export interface Overload {
  /** As cel-go and Kubernetes name it: `string_contains_string`. */
  readonly id: string;
  /** Called as `first.f(rest)`; otherwise as `f(first, rest)`. */
  readonly member: boolean;
  /** The receiver first. */
  readonly args: readonly CelType[];
  readonly result: CelType;
  /**
   * Called with values that fit `args` (any value where that is dyn or a parameter). Charges the budget beforehand
   * for whatever grows with its arguments; the call itself is charged already.
   */
  call(args: readonly CelValue[], budget: Budget): CelValue | CelFault;
  /**
   * Asked once per place where it is called, with the arguments that are constants there (undefined = not one). What
   * it gives is called instead of `call`: a pattern is compiled once. undefined = nothing to prepare.
   */
  prepare?(constants: readonly (CelValue | undefined)[]): Overload['call'] | undefined;
}

export interface MacroCall {
  /** Where the macro stands in the source. */
  readonly at: number;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

export interface Macro {
  readonly name: string;
  readonly member: boolean;
  /** How many arguments. */
  readonly arity: number;
  /** undefined = not ours after all: an ordinary call. Throws CelSyntaxError for wrong use. */
  expand(call: MacroCall): Expr | undefined;
}

export interface Library {
  /** Overloads of one function are tried in this order; several libraries may add to one name. */
  readonly functions?: Readonly<Record<string, readonly Overload[]>>;
  readonly macros?: readonly Macro[];
  /** Those that expressions may name: `type(x) == net.IP`. */
  readonly types?: readonly OpaqueType[];
}
