/**
 * Our own CEL (docs/adr/0008-own-cel.md). Source in, program out: the one door for everybody who uses it.
 *
 *   source ──parse──► tree ──check──► types (or problems) ──plan──► closures ──evaluate(activation, budget)──► value
 *
 *   parse/       tokens, tree, macros            evaluate/     the planner and what the operators do
 *   check/       types, in the words of cel-go   standard/     the functions of the language
 *   extensions/  cel-go's own libraries          kubernetes/   those of Kubernetes
 *   estimate/    what it may cost at most, told before it ever runs
 *
 * Nobody can hold the process with it. Compiling is bounded by the length of the source (parse/limits.ts) and by what
 * the check may take (check/allowance.ts); evaluating by units (budget.ts): each step pays before it works, and a
 * million units are below 50 ms of CPU, whatever they are spent on. A new function must pay for whatever grows with its
 * arguments; hostile.fixture.ts is where to try it.
 */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/budget.ts';
import type { CheckAllowance } from '#cel/check/allowance.ts';
import type { CheckedTree } from '#cel/check/annotations.ts';
import { check } from '#cel/check/check.ts';
import { typeString } from '#cel/check/format-type.ts';
import type { Environment } from '#cel/environment.ts';
import { plan } from '#cel/evaluate/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { CelSyntaxError, describeProblems } from '#cel/syntax-error.ts';
import type { CelType } from '#cel/type.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

/** What the variables are in one evaluation; asked only for those that are needed. undefined = not there: a fault. */
export type Activation = (name: string) => CelValue | CelFault | undefined;

export interface Program {
  readonly source: string;
  /** What it gives, as far as the checker can tell. */
  readonly type: CelType;
  /** Where `annotate` asked for it. */
  readonly checked?: CheckedTree | undefined;
  /** Throws CostLimitError, and nothing else. */
  evaluate(activation: Activation, budget: Budget): CelValue | CelFault;
}

export interface CompileFailure {
  /**
   * `source`: as cel-go prints it, `ERROR: <input>:1:13: Syntax error: ...\n | object.spec.(\n | ............^`;
   * Kubernetes puts `compilation failed: ` before it.
   * `result`: `must evaluate to bool but got int`, which it tells as it is.
   */
  readonly failure: string;
  readonly about: 'source' | 'result';
}

export interface CompileOptions {
  /**
   * The program must give exactly one of these types. dyn is not good enough, as in Kubernetes: write
   * `bool(object.spec.paused)`. dyn among them lets everything pass.
   */
  readonly expect?: readonly CelType[];
  /** May the elements of one list or map literal be of different types? Not in Kubernetes. */
  readonly mixedLiterals?: boolean;
  /** Shared by expressions that are compiled at one go, so that they take bounded time together. */
  readonly allowance?: CheckAllowance;
  /** Keeps the tree and its types, for an estimate of the cost (estimate/estimate-cost.ts). */
  readonly annotate?: boolean;
}

export function compile(
  source: string,
  environment: Environment,
  options: CompileOptions = {},
): Program | CompileFailure {
  const tree = parseOrFail(source, environment);
  if ('failure' in tree) return tree;

  const { type, problems, more, checked } = check(tree, environment, options);
  if (problems.length > 0) return { failure: describeProblems(source, problems, more), about: 'source' };

  const failure = resultFailure(type, options.expect);
  if (failure !== undefined) return { failure, about: 'result' };

  const evaluate = plan(tree, environment);
  return { source, type, checked, evaluate };
}

function parseOrFail(source: string, environment: Environment): Expr | CompileFailure {
  try {
    return parse(source, environment.macros);
  } catch (error) {
    if (error instanceof CelSyntaxError) return { failure: describeProblems(source, error.problems), about: 'source' };
    throw error;
  }
}

function resultFailure(type: CelType, expect: readonly CelType[] | undefined): string | undefined {
  const wanted = expect?.map(typeString);
  const found = typeString(type);
  if (!wanted || wanted.includes(found) || wanted.includes('dyn')) return undefined;
  const what = wanted.length === 1 ? wanted[0] : `one of [${wanted.join(' ')}]`;
  return `must evaluate to ${what} but got ${found}`;
}
