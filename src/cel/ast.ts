/**
 * The syntax tree after macros are expanded. `at` is the offset in the source (UTF-16) that messages point to: for a
 * call its operator or parenthesis, for a selection its dot, otherwise the first character.
 */
import type { CelUint } from '#cel/value.ts';

export type Literal = null | boolean | bigint | number | string | Uint8Array | CelUint;

export interface ConstExpr {
  readonly kind: 'const';
  readonly at: number;
  readonly value: Literal;
}

/** A leading dot (`.name`) makes it absolute. */
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
  /** has(operand.field) */
  readonly test: boolean;
}

/** Operators are calls named as in the specification: `_+_`, `!_`, `_?_:_`, `_[_]`, `_?._`, `_[?_]`, `@in`. */
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

/** `Name{field: value}`. Nothing in Kubernetes has messages: the checker refuses it by name. */
export interface MessageExpr {
  readonly kind: 'message';
  readonly at: number;
  readonly name: string;
  readonly entries: readonly { readonly field: string; readonly value: Expr; readonly optional: boolean }[];
}

/** What all, exists, map and filter become: a fold over a list or the keys of a map. */
export interface FoldExpr {
  readonly kind: 'fold';
  readonly at: number;
  readonly range: Expr;
  /** The element, or with two variables: the index or key. */
  readonly variable: string;
  /** With two variables: the element or value. */
  readonly second: string | undefined;
  readonly accumulator: string;
  readonly start: Expr;
  /** Goes on while this is true. */
  readonly condition: Expr;
  readonly step: Expr;
  readonly result: Expr;
}

export type Expr = ConstExpr | IdentExpr | SelectExpr | CallExpr | ListExpr | MapExpr | MessageExpr | FoldExpr;
