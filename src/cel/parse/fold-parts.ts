/** Builds the expressions that macros expand to. All nodes have the offset of the macro. */
import type { CallExpr, Expr, FoldExpr } from '#cel/ast.ts';

/** Not a valid identifier, so no source can use it. */
export const ACCUMULATOR = '@result';
const UNUSED = '#unused';

export const accumulator = (at: number): Expr => ({ kind: 'ident', at, name: ACCUMULATOR });
const constant = (at: number, value: boolean | bigint): Expr => ({ kind: 'const', at, value });
export const global = (at: number, name: string, ...args: Expr[]): CallExpr => ({
  kind: 'call',
  at,
  name,
  target: undefined,
  args,
});
const listExpr = (at: number, ...values: Expr[]): Expr => ({
  kind: 'list',
  at,
  elements: values.map((value) => ({ value, optional: false })),
});

/** A fold without its range and variables. */
export type FoldBody = Pick<FoldExpr, 'start' | 'condition' | 'step' | 'result'>;

export function all(at: number, predicate: Expr): FoldBody {
  return {
    start: constant(at, true),
    condition: global(at, '@not_strictly_false', accumulator(at)),
    step: global(at, '_&&_', accumulator(at), predicate),
    result: accumulator(at),
  };
}

export function exists(at: number, predicate: Expr): FoldBody {
  return {
    start: constant(at, false),
    condition: global(at, '@not_strictly_false', global(at, '!_', accumulator(at))),
    step: global(at, '_||_', accumulator(at), predicate),
    result: accumulator(at),
  };
}

export function existsOne(at: number, predicate: Expr): FoldBody {
  const more = global(at, '_+_', accumulator(at), constant(at, 1n));
  return {
    start: constant(at, 0n),
    condition: constant(at, true),
    step: global(at, '_?_:_', predicate, more, accumulator(at)),
    result: global(at, '_==_', accumulator(at), constant(at, 1n)),
  };
}

/** Folds from `start` and evaluates `more` in each iteration for which the filter is true. */
export function collectFold(at: number, filter: Expr | undefined, start: Expr, more: Expr): FoldBody {
  return {
    start,
    condition: constant(at, true),
    step: filter === undefined ? more : global(at, '_?_:_', filter, more, accumulator(at)),
    result: accumulator(at),
  };
}

/** Collects the elements in a list. */
export function collectList(at: number, filter: Expr | undefined, element: Expr): FoldBody {
  return collectFold(at, filter, listExpr(at), global(at, '_+_', accumulator(at), listExpr(at, element)));
}

/** Names a value by a fold without iterations. */
export function bindExpr(at: number, name: string, value: Expr, result: Expr): FoldExpr {
  return {
    kind: 'fold',
    at,
    range: listExpr(at),
    variable: UNUSED,
    second: undefined,
    accumulator: name,
    start: value,
    condition: constant(at, false),
    step: { kind: 'ident', at, name },
    result,
  };
}
