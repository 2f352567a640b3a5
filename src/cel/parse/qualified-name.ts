/**
 * Names with dots. `optional.of(x)` parses as the member call `of` on the identifier `optional`, and
 * `google.protobuf.Timestamp` as two selections. The planner and the checker resolve names in this order:
 *
 *   1. If the first part is a variable of an enclosing fold, it is that variable, and the rest are selections.
 *   2. `a.b.c`: the longest of `a.b.c`, `a.b`, `a` that is a declared variable, then one that is the name of a type.
 *   3. `a.b.f(x)`: the function `a.b.f` if it exists without a receiver; otherwise `f` on `a.b`.
 */
import type { Expr } from '#cel/ast.ts';

/** No declared name has more dots. Avoids joining a long chain of selections repeatedly. */
const MAX_DOTS = 8;

/**
 * Returns `a.b.c` as one name, without a leading dot, or undefined if the expression has other parts than identifiers.
 */
export function qualifiedName(expr: Expr): string | undefined {
  const fields: string[] = [];
  let inner = expr;
  while (inner.kind === 'select' && !inner.test && fields.length < MAX_DOTS) {
    fields.push(inner.field);
    inner = inner.operand;
  }
  if (inner.kind !== 'ident') return undefined;
  return [inner.name.replace(/^\./, ''), ...fields.toReversed()].join('.');
}

/** Returns the `a` of `a.b.c`. */
export function rootName(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 ? name : name.slice(0, dot);
}
