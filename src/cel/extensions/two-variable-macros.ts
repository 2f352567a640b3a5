/**
 * cel-go's comprehensions with two variables: index and element of a list, key and value of a map.
 * `list.all(i, v, ...)`, `map.transformMap(k, v, filter, value)`.
 */
import type { CallExpr, Expr, FoldExpr } from '#cel/ast.ts';
import { insertOverloads } from '#cel/extensions/map-insert.ts';
import type { Library, Macro, MacroCall } from '#cel/library.ts';
import { ACCUMULATOR, variableName } from '#cel/parse/macros.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const INSERT = 'cel.@mapInsert';

const accumulator = (at: number): Expr => ({ kind: 'ident', at, name: ACCUMULATOR });
const constant = (at: number, value: boolean | bigint): Expr => ({ kind: 'const', at, value });
const call = (at: number, name: string, ...args: Expr[]): CallExpr => ({
  kind: 'call',
  at,
  name,
  target: undefined,
  args,
});

type Fold = Pick<FoldExpr, 'start' | 'condition' | 'step' | 'result'>;

/** What one macro does with what follows the two names. */
interface Body {
  readonly at: number;
  readonly key: Expr;
  readonly filter: Expr | undefined;
  readonly last: Expr;
}

function macro(name: string, arity: 3 | 4, fold: (body: Body) => Fold): Macro {
  const expand = ({ at, target, args }: MacroCall): FoldExpr | undefined => {
    const [first, other] = args;
    const last = args.at(-1);
    if (target === undefined || first === undefined || last === undefined) return undefined;
    const variable = variableName(first, 'argument must be a simple name');
    const second = variableName(other, 'argument must be a simple name');
    if (variable === second) {
      throw new CelSyntaxError([{ at: other?.at ?? at, message: `duplicate variable name: ${variable}` }]);
    }
    const body = { at, key: first, filter: arity === 4 ? args[2] : undefined, last };
    return { kind: 'fold', at, range: target, variable, second, accumulator: ACCUMULATOR, ...fold(body) };
  };
  return { name, member: true, arity, expand };
}

function all({ at, last }: Body): Fold {
  return {
    start: constant(at, true),
    condition: call(at, '@not_strictly_false', accumulator(at)),
    step: call(at, '_&&_', accumulator(at), last),
    result: accumulator(at),
  };
}

function exists({ at, last }: Body): Fold {
  return {
    start: constant(at, false),
    condition: call(at, '@not_strictly_false', call(at, '!_', accumulator(at))),
    step: call(at, '_||_', accumulator(at), last),
    result: accumulator(at),
  };
}

function existsOne({ at, last }: Body): Fold {
  const more = call(at, '_+_', accumulator(at), constant(at, 1n));
  return {
    start: constant(at, 0n),
    condition: constant(at, true),
    step: call(at, '_?_:_', last, more, accumulator(at)),
    result: call(at, '_==_', accumulator(at), constant(at, 1n)),
  };
}

/** From `start`, one `more` for each turn in which the filter holds. */
function collect({ at, filter }: Body, start: Expr, more: Expr): Fold {
  return {
    start,
    condition: constant(at, true),
    step: filter === undefined ? more : call(at, '_?_:_', filter, more, accumulator(at)),
    result: accumulator(at),
  };
}

function transformList(body: Body): Fold {
  const { at, last } = body;
  const element: Expr = { kind: 'list', at, elements: [{ value: last, optional: false }] };
  return collect(body, { kind: 'list', at, elements: [] }, call(at, '_+_', accumulator(at), element));
}

function transformMap(body: Body): Fold {
  const { at, key, last } = body;
  return collect(body, { kind: 'map', at, entries: [] }, call(at, INSERT, accumulator(at), key, last));
}

function transformMapEntry(body: Body): Fold {
  const { at, last } = body;
  return collect(body, { kind: 'map', at, entries: [] }, call(at, INSERT, accumulator(at), last));
}

export const twoVariableLibrary: Library = {
  functions: { [INSERT]: insertOverloads },
  macros: [
    macro('all', 3, all),
    macro('exists', 3, exists),
    macro('existsOne', 3, existsOne),
    macro('exists_one', 3, existsOne),
    macro('transformList', 3, transformList),
    macro('transformList', 4, transformList),
    macro('transformMap', 3, transformMap),
    macro('transformMap', 4, transformMap),
    macro('transformMapEntry', 3, transformMapEntry),
    macro('transformMapEntry', 4, transformMapEntry),
  ],
};
