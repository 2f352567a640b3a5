/**
 * Additional checks of Kubernetes for a well-typed expression: literals that always fail (`duration('x')`, an invalid
 * regular expression), and list and map literals with elements of different types.
 */
import type { CallExpr } from '#cel/ast.ts';
import { CostLimitError } from '#cel/budget.ts';
import type { CheckAllowance } from '#cel/check/allowance.ts';
import { resolveOverload } from '#cel/check/resolve-overload.ts';
import { Unifier } from '#cel/check/unifier.ts';
import type { Environment } from '#cel/environment.ts';
import type { CelProblem } from '#cel/syntax-error.ts';
import type { CelType } from '#cel/type.ts';
import { INT, STRING } from '#cel/type.ts';
import type { CelValue } from '#cel/value.ts';
import { CelFault } from '#cel/value.ts';

export interface Element {
  readonly at: number;
  readonly type: CelType;
}

export function literalProblems(
  calls: readonly CallExpr[],
  environment: Environment,
  allowance: CheckAllowance,
): CelProblem[] {
  const problems: CelProblem[] = [];
  try {
    for (const call of calls) {
      const literal = call.args[0];
      if (literal?.kind !== 'const' || !isKnownToFail(call, literal.value, environment, allowance)) continue;
      problems.push({ at: literal.at, message: `invalid ${call.name} argument` });
    }
  } catch (error) {
    if (!(error instanceof CostLimitError)) throw error;
  }
  return problems;
}

function isKnownToFail(
  call: CallExpr,
  literal: CelValue,
  environment: Environment,
  allowance: CheckAllowance,
): boolean {
  switch (call.name) {
    case 'duration':
    case 'timestamp':
      return !call.target && fails(environment, call.name, [literal], false, allowance);
    case 'matches':
      return call.target !== undefined && fails(environment, call.name, ['', literal], true, allowance);
    default:
      return false;
  }
}

function fails(
  environment: Environment,
  name: string,
  args: readonly CelValue[],
  member: boolean,
  allowance: CheckAllowance,
): boolean {
  const types = args.map((arg) => (typeof arg === 'bigint' ? INT : STRING));
  const overload = environment.functions
    .get(name)
    ?.find((candidate) => resolveOverload(new Unifier(allowance), [candidate], types, member) !== undefined);
  allowance.trials.charge(10);
  return overload !== undefined && overload.call(args, allowance.trials) instanceof CelFault;
}

/** Returns the first element whose type differs from the type of the first element. */
export function mixedElements(
  elements: readonly Element[],
  unifier: Unifier,
): { at: number; expected: CelType; found: CelType } | undefined {
  const [first, ...others] = elements.map(({ at, type }) => ({ at, type: unifier.resolve(type, 'dyn') }));
  const odd = first && others.find(({ type }) => !unifier.same(first.type, type));
  return odd && { at: odd.at, expected: first.type, found: odd.type };
}
