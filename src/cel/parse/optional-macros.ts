/**
 * The macros optMap and optFlatMap. cel-go's expansions evaluate the target twice, so that nested macros double the
 * tree; here a fold without iterations binds the target to a name first.
 */
import type { CallExpr, Expr } from '#cel/ast.ts';
import type { Macro, MacroCall } from '#cel/library.ts';
import { bindExpr, global } from '#cel/parse/fold-parts.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const TARGET = '@target';

function onTarget(at: number, name: string): CallExpr {
  return { kind: 'call', at, name, target: { kind: 'ident', at, name: TARGET }, args: [] };
}

function optionalMacro(name: string, wrap: (at: number, mapped: Expr) => Expr): Macro {
  const expand = ({ at, target, args: [variable, mapped] }: MacroCall): Expr | undefined => {
    if (target === undefined || variable === undefined || mapped === undefined) return undefined;
    if (variable.kind !== 'ident') {
      const message = `${name}() variable name must be a simple identifier`;
      throw new CelSyntaxError([{ at: variable.at, message }]);
    }
    const value = bindExpr(at, variable.name, onTarget(at, 'value'), mapped);
    const choice = global(at, '_?_:_', onTarget(at, 'hasValue'), wrap(at, value), global(at, 'optional.none'));
    return bindExpr(at, TARGET, target, choice);
  };
  return { name, member: true, arity: 2, expand };
}

export const optionalMacros: readonly Macro[] = [
  optionalMacro('optMap', (at, mapped) => global(at, 'optional.of', mapped)),
  optionalMacro('optFlatMap', (_at, mapped) => mapped),
];
