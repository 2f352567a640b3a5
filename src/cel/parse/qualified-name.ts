/**
 * Names with dots. `optional.of(x)` parses as the member call `of` on the identifier `optional`, and
 * `google.protobuf.Timestamp` as two selections. Who resolves names (planner and checker) does it in this order:
 *
 *   1. The first part is a variable of a surrounding fold: then it is just that, and the rest are selections.
 *   2. `a.b.c`: the longest of `a.b.c`, `a.b`, `a` that is a declared variable, then one that is a type's name.
 *   3. `a.b.f(x)`: when `a.b.f` is a function that is called without receiver, it is that; otherwise `f` on `a.b`.
 */
import type { Expr } from '#cel/ast.ts';

/** No declared name has more dots; so a long chain of selections is not joined over and over. */
const MAX_DOTS = 8;

/** `a.b.c` as one name; undefined = something else than identifiers and dots. A leading dot is left out. */
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

/** The `a` of `a.b.c`. */
export function rootName(name: string): string {
  const dot = name.indexOf('.');
  return dot === -1 ? name : name.slice(0, dot);
}
