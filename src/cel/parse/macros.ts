/** The macros of the language: has, all, exists, exists_one, map and filter. They expand to folds. */
import type { Expr, FoldExpr } from '#cel/ast.ts';
import type { Macro, MacroCall } from '#cel/library.ts';
import { ACCUMULATOR, all, collectList, exists, existsOne } from '#cel/parse/fold-parts.ts';
import type { FoldBody } from '#cel/parse/fold-parts.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

/** The accumulator of older versions of cel-go. As there, it cannot be used as a variable. */
const OLD_ACCUMULATOR = '__result__';

/** Returns the variable name that an argument of a macro declares. */
export function readVariableName(arg: Expr | undefined, problem: string): string {
  if (arg?.kind !== 'ident') throw new CelSyntaxError([{ at: arg?.at ?? 0, message: problem }]);
  if (arg.name === ACCUMULATOR || arg.name === OLD_ACCUMULATOR) {
    throw new CelSyntaxError([{ at: arg.at, message: 'iteration variable overwrites accumulator variable' }]);
  }
  return arg.name;
}

function foldMacro(
  name: string,
  arity: number,
  problem: string,
  fold: (at: number, args: readonly Expr[]) => FoldBody,
): Macro {
  const expand = ({ at, target, args }: MacroCall): FoldExpr | undefined => {
    if (target === undefined) return undefined;
    const variable = readVariableName(args[0], problem);
    return {
      kind: 'fold',
      at,
      range: target,
      variable,
      second: undefined,
      accumulator: ACCUMULATOR,
      ...fold(at, args),
    };
  };
  return { name, member: true, arity, expand };
}

const SIMPLE_NAME = 'argument must be a simple name';
const IDENTIFIER = 'argument is not an identifier';

const has: Macro = {
  name: 'has',
  member: false,
  arity: 1,
  expand({ at, args: [arg] }) {
    if (arg?.kind === 'select' && !arg.test) return { ...arg, at, test: true };
    throw new CelSyntaxError([{ at: arg?.at ?? at, message: 'invalid argument to has() macro' }]);
  },
};

export const standardMacros: readonly Macro[] = [
  has,
  foldMacro('all', 2, SIMPLE_NAME, (at, [, predicate]) => all(at, predicate as Expr)),
  foldMacro('exists', 2, SIMPLE_NAME, (at, [, predicate]) => exists(at, predicate as Expr)),
  foldMacro('exists_one', 2, SIMPLE_NAME, (at, [, predicate]) => existsOne(at, predicate as Expr)),
  foldMacro('map', 2, IDENTIFIER, (at, [, element]) => collectList(at, undefined, element as Expr)),
  foldMacro('map', 3, IDENTIFIER, (at, [, filter, element]) => collectList(at, filter, element as Expr)),
  foldMacro('filter', 2, IDENTIFIER, (at, [element, filter]) => collectList(at, filter, element as Expr)),
];
