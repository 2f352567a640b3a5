/** The macros of the language: has, all, exists, exists_one, map and filter, as folds. */
import type { CallExpr, Expr, FoldExpr } from '#cel/ast.ts';
import type { Macro, MacroCall } from '#cel/library.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

/** No identifier of a source can be this. */
export const ACCUMULATOR = '@result';
/** What older sources of cel-go name it: refused as a variable, as there. */
const OLD_ACCUMULATOR = '__result__';

const accumulator = (at: number): Expr => ({ kind: 'ident', at, name: ACCUMULATOR });
const constant = (at: number, value: boolean | bigint): Expr => ({ kind: 'const', at, value });
const call = (at: number, name: string, ...args: Expr[]): CallExpr => ({
  kind: 'call',
  at,
  name,
  target: undefined,
  args,
});
const list = (at: number, ...values: Expr[]): Expr => ({
  kind: 'list',
  at,
  elements: values.map((value) => ({ value, optional: false })),
});

type Fold = Pick<FoldExpr, 'start' | 'condition' | 'step' | 'result'>;

/** The name that the macro's first argument declares. */
export function variableName(arg: Expr | undefined, problem: string): string {
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
  fold: (at: number, args: readonly Expr[]) => Fold,
): Macro {
  const expand = ({ at, target, args }: MacroCall): FoldExpr | undefined => {
    if (target === undefined) return undefined;
    const variable = variableName(args[0], problem);
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

function all(at: number, [, predicate]: readonly Expr[]): Fold {
  return {
    start: constant(at, true),
    condition: call(at, '@not_strictly_false', accumulator(at)),
    step: call(at, '_&&_', accumulator(at), predicate as Expr),
    result: accumulator(at),
  };
}

function exists(at: number, [, predicate]: readonly Expr[]): Fold {
  return {
    start: constant(at, false),
    condition: call(at, '@not_strictly_false', call(at, '!_', accumulator(at))),
    step: call(at, '_||_', accumulator(at), predicate as Expr),
    result: accumulator(at),
  };
}

function existsOne(at: number, [, predicate]: readonly Expr[]): Fold {
  const more = call(at, '_+_', accumulator(at), constant(at, 1n));
  return {
    start: constant(at, 0n),
    condition: constant(at, true),
    step: call(at, '_?_:_', predicate as Expr, more, accumulator(at)),
    result: call(at, '_==_', accumulator(at), constant(at, 1n)),
  };
}

/** Adds to a list; only where `filter` holds. */
function collect(at: number, filter: Expr | undefined, element: Expr): Fold {
  const more = call(at, '_+_', accumulator(at), list(at, element));
  return {
    start: list(at),
    condition: constant(at, true),
    step: filter === undefined ? more : call(at, '_?_:_', filter, more, accumulator(at)),
    result: accumulator(at),
  };
}

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
  foldMacro('all', 2, SIMPLE_NAME, all),
  foldMacro('exists', 2, SIMPLE_NAME, exists),
  foldMacro('exists_one', 2, SIMPLE_NAME, existsOne),
  foldMacro('map', 2, IDENTIFIER, (at, [, element]) => collect(at, undefined, element as Expr)),
  foldMacro('map', 3, IDENTIFIER, (at, [, filter, element]) => collect(at, filter, element as Expr)),
  foldMacro('filter', 2, IDENTIFIER, (at, [element, filter]) => collect(at, filter, element as Expr)),
];
