/**
 * The syntax tree after macro expansion. `at` is the offset in the source (in UTF-16 units) that error messages point
 * to: the operator or parenthesis of a call, the dot of a selection, otherwise the first character.
 */
import type { CelUint } from '#cel/value.ts';

export type Literal = null | boolean | bigint | number | string | Uint8Array | CelUint;

export interface ConstExpr {
  readonly kind: 'const';
  readonly at: number;
  readonly value: Literal;
}

/** An identifier. A leading dot (`.name`) makes the name absolute. */
export interface IdentExpr {
  readonly kind: 'ident';
  readonly at: number;
  readonly name: string;
}

export interface SelectExpr {
  readonly kind: 'select';
  readonly at: number;
  readonly operand: Expr;
  readonly field: string;
  /** True for `has(operand.field)`. */
  readonly test: boolean;
}

/**
 * A call. Operators are calls with the names of the specification: `_+_`, `!_`, `_?_:_`, `_[_]`, `_?._`, `_[?_]`,
 * `@in`.
 */
export interface CallExpr {
  readonly kind: 'call';
  readonly at: number;
  readonly name: string;
  readonly target: Expr | undefined;
  readonly args: readonly Expr[];
}

export interface ListExpr {
  readonly kind: 'list';
  readonly at: number;
  readonly elements: readonly { readonly value: Expr; readonly optional: boolean }[];
}

export interface MapExpr {
  readonly kind: 'map';
  readonly at: number;
  readonly entries: readonly { readonly key: Expr; readonly value: Expr; readonly optional: boolean }[];
}

/**
 * A message literal, `Name{field: value}`. Kubernetes has no message types, so the checker rejects each of them by
 * name.
 */
export interface MessageExpr {
  readonly kind: 'message';
  readonly at: number;
  readonly name: string;
  readonly entries: readonly { readonly field: string; readonly value: Expr; readonly optional: boolean }[];
}

/** A fold over a list or the keys of a map. The macros all, exists, map and filter expand to folds. */
export interface FoldExpr {
  readonly kind: 'fold';
  readonly at: number;
  readonly range: Expr;
  /** The element; with two variables, the index or key. */
  readonly variable: string;
  /** The element or value, if the fold has two variables. */
  readonly second: string | undefined;
  readonly accumulator: string;
  readonly start: Expr;
  /** The fold continues while this expression is true. */
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
}

export type Expr = ConstExpr | IdentExpr | SelectExpr | CallExpr | ListExpr | MapExpr | MessageExpr | FoldExpr;
