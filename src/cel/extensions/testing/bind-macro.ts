/** The macro `cel.bind(name, value, expression)`, which names a value. It expands to a fold without iterations. */
import type { Expr } from '#cel/ast.ts';
import type { Library, MacroCall } from '#cel/library.ts';
import { bindExpr } from '#cel/parse/fold-parts.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

export const bindLibrary: Library = { macros: [{ name: 'bind', member: true, arity: 3, expand }] };

function expand({ at, target, args: [name, value, result] }: MacroCall): Expr | undefined {
  if (target?.kind !== 'ident' || target.name !== 'cel') return undefined;
  if (name === undefined || value === undefined || result === undefined) return undefined;
  if (name.kind !== 'ident') {
    const message = 'cel.bind() variable names must be simple identifiers';
    throw new CelSyntaxError([{ at: name.at, message }]);
  }
  return bindExpr(at, name.name, value, result);
}
