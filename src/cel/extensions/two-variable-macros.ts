/**
 * cel-go's comprehensions with two variables, for index and element of a list or key and value of a map: `list.all(i,
 * v, ...)`, `map.transformMap(k, v, filter, value)`.
 */
import type { Expr, FoldExpr } from '#cel/ast.ts';
import { insertOverloads } from '#cel/extensions/map-insert.ts';
import type { Library, Macro, MacroCall } from '#cel/library.ts';
import { ACCUMULATOR, accumulator, all, collectFold, collectList } from '#cel/parse/fold-parts.ts';
import { exists, existsOne, global } from '#cel/parse/fold-parts.ts';
import type { FoldBody } from '#cel/parse/fold-parts.ts';
import { readVariableName } from '#cel/parse/macros.ts';
import { CelSyntaxError } from '#cel/syntax-error.ts';

const INSERT = 'cel.@mapInsert';

/** The arguments of a macro after the two variable names. */
interface Body {
  readonly at: number;
  readonly key: Expr;
  readonly filter: Expr | undefined;
  readonly last: Expr;
}

function macro(name: string, arity: 3 | 4, fold: (body: Body) => FoldBody): Macro {
  const expand = ({ at, target, args }: MacroCall): FoldExpr | undefined => {
    const [first, other] = args;
    const last = args.at(-1);
    if (target === undefined || first === undefined || last === undefined) return undefined;
    const variable = readVariableName(first, 'argument must be a simple name');
    const second = readVariableName(other, 'argument must be a simple name');
    if (variable === second) {
      throw new CelSyntaxError([{ at: other?.at ?? at, message: `duplicate variable name: ${variable}` }]);
    }
    const body = { at, key: first, filter: arity === 4 ? args[2] : undefined, last };
    return { kind: 'fold', at, range: target, variable, second, accumulator: ACCUMULATOR, ...fold(body) };
  };
  return { name, member: true, arity, expand };
}

function emptyMap(at: number): Expr {
  return { kind: 'map', at, entries: [] };
}

function transformMap({ at, key, filter, last }: Body): FoldBody {
  return collectFold(at, filter, emptyMap(at), global(at, INSERT, accumulator(at), key, last));
}

function transformMapEntry({ at, filter, last }: Body): FoldBody {
  return collectFold(at, filter, emptyMap(at), global(at, INSERT, accumulator(at), last));
}

const quantifier =
  (fold: (at: number, predicate: Expr) => FoldBody) =>
  ({ at, last }: Body) =>
    fold(at, last);
const transformList = ({ at, filter, last }: Body) => collectList(at, filter, last);

export const twoVariableLibrary: Library = {
  functions: { [INSERT]: insertOverloads },
  macros: [
    macro('all', 3, quantifier(all)),
    macro('exists', 3, quantifier(exists)),
    macro('existsOne', 3, quantifier(existsOne)),
    macro('exists_one', 3, quantifier(existsOne)),
    macro('transformList', 3, transformList),
    macro('transformList', 4, transformList),
    macro('transformMap', 3, transformMap),
    macro('transformMap', 4, transformMap),
    macro('transformMapEntry', 3, transformMapEntry),
    macro('transformMapEntry', 4, transformMapEntry),
  ],
};
