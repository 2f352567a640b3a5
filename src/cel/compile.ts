/**
 * Selfsame's CEL implementation (docs/adr/0008-own-cel.md). Compiles source into a program; all users of CEL start
 * here.
 *
 *   source ──parse──► tree ──check──► types (or problems) ──plan──► closures ──evaluate(activation, budget)──► value
 *
 *   parse/       tokens, tree, macros            evaluate/     the planner and the operators
 *   check/       types, with cel-go's messages   standard/     the functions of the language
 *   extensions/  cel-go's extension libraries    kubernetes/   the libraries of Kubernetes
 *   estimate/    the maximum cost of an expression, estimated before it runs
 *
 * No expression can block the process. Compilation is bounded by the length of the source (parse/limits.ts) and by the
 * budget of the check (limits/check-budget.ts); evaluation is bounded by cost units (limits/budget.ts): each step charges
 * before it works, and a million units take less than 50 ms of CPU time, whatever they are spent on. A new function
 * must charge for all work that grows with its arguments; add a case to testing/hostile.ts.
 */
import type { Expr } from '#cel/ast.ts';
import type { Budget } from '#cel/limits/budget.ts';
import type { CheckBudget } from '#cel/limits/check-budget.ts';
import type { CheckedTree } from '#cel/check/annotations.ts';
import { check } from '#cel/check/check.ts';
import { typeString } from '#cel/check/format-type.ts';
import type { Activation, Environment } from '#cel/environment.ts';
import { plan } from '#cel/evaluate/plan/plan.ts';
import { parse } from '#cel/parse/parse.ts';
import { CelSyntaxError, describeProblems } from '#cel/syntax-error.ts';
import type { CelType } from '#cel/type.ts';
import type { CelFault, CelValue } from '#cel/value.ts';

export interface Program {
  readonly source: string;
  /** The type of the result, as far as the checker can determine it. */
  readonly type: CelType;
  /** Set if `annotate` was set. */
  readonly checked?: CheckedTree | undefined;
  /** Throws only CostLimitError. */
  evaluate(activation: Activation, budget: Budget): CelValue | CelFault;
}

export interface CompileFailure {
  /**
   * `source`: the message of cel-go, `ERROR: <input>:1:13: Syntax error: ...\n | object.spec.(\n | ............^`.
   * Kubernetes prefixes it with `compilation failed: `. `result`: `must evaluate to bool but got int`, which Kubernetes
   * reports unchanged.
   */
  readonly failure: string;
  readonly about: 'source' | 'result';
}

export interface CompileOptions {
  /**
   * The program must have exactly one of these types. As in Kubernetes, dyn does not match another type: write
   * `bool(object.spec.paused)`. If dyn is in the list, every type matches.
   */
  readonly expect?: readonly CelType[];
  /** Allows elements of different types in one list or map literal. Kubernetes does not allow them. */
  readonly mixedLiterals?: boolean;
  /** Shared by expressions that are compiled together, to bound their total time. */
  readonly checkBudget?: CheckBudget;
  /** Keeps the tree and its types for a cost estimate (estimate/estimate-cost.ts). */
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

  const failure = checkResultType(type, options.expect);
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

function checkResultType(type: CelType, expect: readonly CelType[] | undefined): string | undefined {
  const wanted = expect?.map(typeString);
  const found = typeString(type);
  if (!wanted || wanted.includes(found) || wanted.includes('dyn')) return undefined;
  const what = wanted.length === 1 ? wanted[0] : `one of [${wanted.join(' ')}]`;
  return `must evaluate to ${what} but got ${found}`;
}
