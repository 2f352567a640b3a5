/**
 * Additional checks of Kubernetes for a well-typed expression: literals that always fail (`duration('x')`, an invalid
 * regular expression), and list and map literals with elements of different types.
 */
import type { CallExpr } from '#cel/ast.ts';
import { CostLimitError } from '#cel/limits/budget.ts';
import type { CheckBudget } from '#cel/limits/check-budget.ts';
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

export function findLiteralProblems(
  calls: readonly CallExpr[],
  environment: Environment,
  checkBudget: CheckBudget,
): CelProblem[] {
  const problems: CelProblem[] = [];
  try {
    for (const call of calls) {
      const literal = call.args[0];
      if (literal?.kind !== 'const' || !alwaysFails(call, literal.value, environment, checkBudget)) continue;
      problems.push({ at: literal.at, message: `invalid ${call.name} argument` });
    }
  } catch (error) {
    if (!(error instanceof CostLimitError)) throw error;
  }
  return problems;
}

function alwaysFails(call: CallExpr, literal: CelValue, environment: Environment, checkBudget: CheckBudget): boolean {
  switch (call.name) {
    case 'duration':
    case 'timestamp':
      return !call.target && callFails(environment, call.name, [literal], false, checkBudget);
    case 'matches':
      return call.target !== undefined && callFails(environment, call.name, ['', literal], true, checkBudget);
    default:
      return false;
  }
}

function callFails(
  environment: Environment,
  name: string,
  args: readonly CelValue[],
  member: boolean,
  checkBudget: CheckBudget,
): boolean {
  const types = args.map((arg) => (typeof arg === 'bigint' ? INT : STRING));
  const overload = environment.functions
    .get(name)
    ?.find((candidate) => resolveOverload(new Unifier(checkBudget), [candidate], types, member) !== undefined);
  checkBudget.literals.charge(10);
  return overload !== undefined && overload.call(args, checkBudget.literals) instanceof CelFault;
}

/** Returns the first element whose type differs from the type of the first element. */
export function findMixedElement(
  elements: readonly Element[],
  unifier: Unifier,
): { at: number; expected: CelType; found: CelType } | undefined {
  const [first, ...others] = elements.map(({ at, type }) => ({ at, type: unifier.resolve(type, 'dyn') }));
  const different = first && others.find(({ type }) => !unifier.isSameType(first.type, type));
  return different && { at: different.at, expected: first.type, found: different.type };
}
