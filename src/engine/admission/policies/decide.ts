/**
 * Evaluates one policy for one request under one binding and one parameter. A generator that yields after each
 * expression, so that the caller can let other requests run (slices.ts).
 */
import type { Program } from '#cel/compile.ts';
import { CelFault } from '#cel/value.ts';
import {
  MATCH_UNITS,
  POLICY_UNITS,
  OUT_OF_BUDGET,
  CostBudget,
  SPENT,
  type EvaluationResult,
} from '#cel/limits/cost-budget.ts';
import type { RequestValues } from '#engine/admission/matching/request-activation.ts';
import type { Units } from '#cel/limits/slices.ts';
import type { CompiledPolicy, CompiledValidation } from '#engine/expressions/compile-policy.ts';
import { LazyVariables } from '#engine/admission/policies/lazy-variables.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface PolicyDenial {
  /** Index of the validation; 0 for denials that do not belong to one. */
  readonly index: number;
  readonly message: string;
  /** Undefined = Invalid. */
  readonly reason: string | undefined;
}

interface PolicyVerdict {
  readonly denials: readonly PolicyDenial[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Errors that refuse the request regardless of the binding's actions. */
  readonly errors: readonly PolicyDenial[];
}

const PASSED: PolicyVerdict = { denials: [], annotations: [], errors: [] };

const MAX_MESSAGE_BYTES = 5 * 1024;
/** Longer annotations are truncated, as in Kubernetes. */
const MAX_ANNOTATION = 10 * 1024;

interface PolicyEvaluation {
  readonly policy: CompiledPolicy;
  readonly ignoresFailures: boolean;
  readonly values: RequestValues;
  readonly params: KubeObject | undefined;
}

export function* decide(evaluation: PolicyEvaluation): Generator<Units, PolicyVerdict> {
  const { policy, ignoresFailures, values, params } = evaluation;
  const failed = (message: string): PolicyVerdict =>
    ignoresFailures ? PASSED : { ...PASSED, denials: [{ index: 0, message, reason: undefined }] };

  // Skips parts that the policy does not have: most have neither conditions nor annotations, and there are many
  // requests.
  if (policy.conditions.length > 0) {
    const error = yield* checkConditions(policy, new Evaluator(evaluation, MATCH_UNITS));
    if (error === 'unmet') return PASSED;
    if (error !== undefined) return failed(error);
  }

  const rules = new Evaluator({ values, params, policy }, POLICY_UNITS);
  const denials: PolicyDenial[] = [];
  for (const [index, rule] of policy.validations.entries()) {
    const result = rules.run(rule.program);
    yield rules.spent;
    if (result === SPENT) return failed(OUT_OF_BUDGET);
    if (result instanceof CelFault) {
      if (!ignoresFailures) denials.push({ index, message: describeError(rule.program, result), reason: undefined });
    } else if (result !== true) {
      const message = messageOf(rule, rules);
      yield rules.spent;
      if (message === undefined) return failed(`failed messageExpression: ${OUT_OF_BUDGET}`);
      denials.push({ index, message, reason: rule.validation.reason });
    }
  }
  if (policy.annotations.length > 0) return { denials, ...(yield* annotationsOf(evaluation)) };
  return denials.length === 0 ? PASSED : { ...PASSED, denials };
}

/**
 * Returns 'unmet' if a condition is false, otherwise the first error, if any. A false condition takes precedence over
 * errors.
 */
function* checkConditions({ conditions }: CompiledPolicy, evaluator: Evaluator): Generator<Units, string | undefined> {
  let error: string | undefined;
  for (const { program } of conditions) {
    const result = evaluator.run(program);
    yield evaluator.spent;
    if (result === false) return 'unmet';
    if (result === SPENT) return OUT_OF_BUDGET;
    if (result instanceof CelFault) error ??= describeError(program, result);
  }
  return error;
}

function* annotationsOf({
  policy,
  ignoresFailures,
  values,
  params,
}: PolicyEvaluation): Generator<Units, Pick<PolicyVerdict, 'annotations' | 'errors'>> {
  const evaluator = new Evaluator({ values, params, policy }, POLICY_UNITS);
  const annotations: { key: string; value: string }[] = [];
  const errors: PolicyDenial[] = [];
  for (const [index, { key, program }] of policy.annotations.entries()) {
    const result = evaluator.run(program);
    yield evaluator.spent;
    if (typeof result === 'string') {
      const value = result.trim().slice(0, MAX_ANNOTATION);
      if (value !== '') annotations.push({ key, value });
    } else if (result !== null && !ignoresFailures) {
      const message = result instanceof CelFault ? describeError(program, result) : OUT_OF_BUDGET;
      errors.push({ index, message, reason: undefined });
    }
  }
  return { annotations, errors };
}

/**
 * Returns the value of the messageExpression, else the message, else the expression. Undefined = the budget is spent.
 */
function messageOf({ validation, message }: CompiledValidation, evaluator: Evaluator): string | undefined {
  const value = message === undefined ? undefined : evaluator.run(message);
  if (value === SPENT) return undefined;
  const text = typeof value === 'string' ? value.trim() : '';
  const usable = text !== '' && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES && !text.includes('\n');
  if (usable) return text;
  return validation.message?.trim() || `failed expression: ${validation.expression.trim()}`;
}

function describeError({ source }: Program, { message }: CelFault): string {
  return `expression '${source}' resulted in error: ${message}`;
}

/** Evaluates expressions that share a budget. */
class Evaluator {
  readonly #variables: LazyVariables;
  readonly #activation: ReturnType<RequestValues['activation']>;
  readonly #costBudget: CostBudget;

  constructor({ values, params, policy }: Pick<PolicyEvaluation, 'values' | 'params' | 'policy'>, units: number) {
    this.#variables = new LazyVariables(policy.variables);
    this.#activation = values.activation({ params, variables: this.#variables });
    this.#costBudget = new CostBudget(units);
  }

  /** Cost of the last run. */
  get spent(): Units {
    return this.#costBudget.spent;
  }

  run(program: Program): EvaluationResult {
    return this.#costBudget.run((budget) => {
      this.#variables.use(this.#activation, budget);
      return program.evaluate(this.#activation, budget);
    });
  }
}
