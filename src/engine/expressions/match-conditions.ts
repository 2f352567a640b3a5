/** matchConditions of webhooks: expressions that must all be true for a webhook to be called. */
import type { CheckBudget } from '#cel/limits/check-budget.ts';
import { compile, type Program } from '#cel/compile.ts';
import type { Activation, Environment } from '#cel/environment.ts';
import { BOOL } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import { MATCH_UNITS, OUT_OF_BUDGET, CostBudget, SPENT } from '#cel/limits/cost-budget.ts';
import { expressionEnvironment } from '#engine/expressions/expression-environment.ts';
import { runIndivisible, type Units } from '#cel/limits/slices.ts';
import { compileUnits, createCheckBudget } from '#cel/limits/source-limits.ts';

export interface MatchConditionLike {
  readonly name: string;
  readonly expression: string;
}

/** The program, or why there is none. */
type Condition = { readonly expression: string } & ({ readonly program: Program } | { readonly failure: string });

/**
 * The compiled conditions. Compiled by the first request that needs them, not in the turn in which they were written
 * and already compiled once.
 */
export class Conditions {
  readonly #sources: readonly string[];
  #compiled: readonly Condition[] | undefined;

  constructor(conditions: readonly MatchConditionLike[]) {
    this.#sources = conditions.map(({ expression }) => expression);
  }

  get isEmpty(): boolean {
    return this.#sources.length === 0;
  }

  /** Stored conditions were compiled before; one that does not compile now fails like an evaluation error. */
  *compiled(): Generator<Units, readonly Condition[]> {
    if (this.#compiled !== undefined) return this.#compiled;
    const checkBudget = createCheckBudget();
    const compileAll = () => this.#sources.map((source) => compileCondition(source, checkBudget));
    return yield* runIndivisible(compileUnits(this.#sources), () => (this.#compiled ??= compileAll()));
  }
}

let environment: Environment | undefined;

function compileCondition(text: string, checkBudget: CheckBudget): Condition {
  const expression = text.trim();
  environment ??= expressionEnvironment({ params: false, authorizer: true });
  const compiled = compile(expression, environment, { expect: [BOOL], checkBudget });
  if (!('failure' in compiled)) return { expression, program: compiled };
  const { about, failure } = compiled;
  return { expression, failure: about === 'source' ? `compilation failed: ${failure}` : failure };
}

/** Returns why an expression is rejected, or undefined if it is valid. The budget is that of its configuration. */
export function conditionFailure(expression: string, checkBudget: CheckBudget): string | undefined {
  const compiled = compileCondition(expression, checkBudget);
  return 'failure' in compiled ? compiled.failure : undefined;
}

/**
 * Reports whether all conditions are true, or the errors. A false condition takes precedence over errors. Yields after
 * each expression (slices.ts).
 */
export function* evaluateConditions(
  conditions: Conditions,
  activation: Activation,
): Generator<Units, boolean | { failure: string }> {
  const failures: string[] = [];
  const costBudget = new CostBudget(MATCH_UNITS);
  for (const condition of yield* conditions.compiled()) {
    if ('failure' in condition) {
      failures.push(condition.failure);
      continue;
    }
    const { expression, program } = condition;
    const result = costBudget.run((budget) => program.evaluate(activation, budget));
    yield costBudget.spent;
    if (result === false) return false;
    if (result === SPENT) return { failure: OUT_OF_BUDGET };
    if (result === true) continue;
    const why = result instanceof CelFault ? result.message : 'the result is not a bool';
    failures.push(`expression '${expression}' resulted in error: ${why}`);
  }
  if (failures.length === 0) return true;
  return { failure: failures.length === 1 ? failures[0]! : `[${failures.join(', ')}]` };
}
