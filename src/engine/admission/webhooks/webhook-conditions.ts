/** matchConditions of webhooks: expressions that must all be true before a webhook is asked. */
import { Budget, CostLimitError } from '#cel/budget.ts';
import { compile, type Activation, type Program } from '#cel/compile.ts';
import type { Environment } from '#cel/environment.ts';
import { BOOL } from '#cel/type.ts';
import { CelFault } from '#cel/value.ts';
import { CALL_UNITS, MATCH_UNITS } from '#engine/admission/expressions/cost.ts';
import { expressionEnvironment } from '#engine/admission/expressions/expression-environment.ts';

export interface MatchConditionLike {
  readonly name: string;
  readonly expression: string;
}

/** The program, or why there is none. */
type Condition = { readonly expression: string } & ({ readonly program: Program } | { readonly failure: string });

export type Conditions = readonly Condition[];

let environment: Environment | undefined;

/** What is stored was compiled before; if it does not compile any more, it fails like an evaluation. */
export function compileConditions(conditions: readonly MatchConditionLike[]): Conditions {
  return conditions.map(({ expression }) => compileCondition(expression));
}

function compileCondition(text: string): Condition {
  const expression = text.trim();
  environment ??= expressionEnvironment({ params: false, authorizer: true });
  const compiled = compile(expression, environment, { expect: [BOOL] });
  if (!('failure' in compiled)) return { expression, program: compiled };
  const { about, failure } = compiled;
  return { expression, failure: about === 'source' ? `compilation failed: ${failure}` : failure };
}

/** Why an expression is refused; undefined = it is not. */
export function conditionFailure(expression: string): string | undefined {
  const compiled = compileCondition(expression);
  return 'failure' in compiled ? compiled.failure : undefined;
}

/** Whether all hold, or what went wrong. One that does not hold settles it, whatever goes wrong in others. */
export function evaluateConditions(conditions: Conditions, activation: Activation): boolean | { failure: string } {
  const failures: string[] = [];
  let left = MATCH_UNITS;
  for (const condition of conditions) {
    const { expression } = condition;
    if ('failure' in condition) {
      failures.push(condition.failure);
      continue;
    }
    const budget = new Budget(Math.min(left, CALL_UNITS));
    const before = budget.left;
    const result = evaluate(condition.program, activation, budget);
    if (result === false) return false;
    if (result instanceof Error && left < CALL_UNITS) return { failure: OUT_OF_BUDGET };
    left -= before - Math.max(0, budget.left);
    if (result === true) continue;
    const why = result instanceof Error || result instanceof CelFault ? result.message : 'the result is not a bool';
    failures.push(`expression '${expression}' resulted in error: ${why}`);
  }
  if (failures.length === 0) return true;
  return { failure: failures.length === 1 ? failures[0]! : `[${failures.join(', ')}]` };
}

const OUT_OF_BUDGET = 'validation failed due to running out of cost budget, no further validation rules will be run';

function evaluate(program: Program, activation: Activation, budget: Budget): unknown {
  try {
    return program.evaluate(activation, budget);
  } catch (error) {
    if (error instanceof CostLimitError) return error;
    throw error;
  }
}
