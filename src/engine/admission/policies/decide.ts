/**
 * What one policy says about one request under one binding and one parameter. A generator: it hands over after each
 * expression, so that whoever drives it can let others have the process (slices.ts).
 */
import type { Program } from '#cel/compile.ts';
import { CelFault } from '#cel/value.ts';
import { MATCH_UNITS, POLICY_UNITS } from '#engine/admission/expressions/cost.ts';
import { OUT_OF_BUDGET, Purse, SPENT, type Evaluated } from '#engine/admission/expressions/purse.ts';
import type { RequestValues } from '#engine/admission/expressions/request-activation.ts';
import type { Units } from '#engine/admission/expressions/slices.ts';
import type { CompiledPolicy, CompiledValidation } from '#engine/admission/policies/compile-policy.ts';
import { LazyVariables } from '#engine/admission/policies/lazy-variables.ts';
import type { KubeObject } from '#kube/meta.ts';

export interface Denial {
  /** Among the policy's validations; what has no place among them counts as the first. */
  readonly index: number;
  readonly message: string;
  /** undefined = Invalid. */
  readonly reason: string | undefined;
}

export interface PolicyVerdict {
  readonly denials: readonly Denial[];
  readonly annotations: readonly { readonly key: string; readonly value: string }[];
  /** Refuses whatever the binding's actions are. */
  readonly faults: readonly Denial[];
}

const PASSED: PolicyVerdict = { denials: [], annotations: [], faults: [] };

const MAX_MESSAGE_BYTES = 5 * 1024;
/** Longer ones are cut, as in Kubernetes. */
const MAX_ANNOTATION = 10 * 1024;

export interface Question {
  readonly policy: CompiledPolicy;
  readonly ignoresFailures: boolean;
  readonly values: RequestValues;
  readonly params: KubeObject | undefined;
}

export function* decide(question: Question): Generator<Units, PolicyVerdict> {
  const { policy, ignoresFailures, values, params } = question;
  const failed = (message: string): PolicyVerdict =>
    ignoresFailures ? PASSED : { ...PASSED, denials: [{ index: 0, message, reason: undefined }] };

  // What a policy does not have is not set up: most have neither conditions nor annotations, and requests are many.
  if (policy.conditions.length > 0) {
    const fault = yield* unmet(policy, new Evaluator(question, MATCH_UNITS));
    if (fault === 'unmet') return PASSED;
    if (fault !== undefined) return failed(fault);
  }

  const rules = new Evaluator({ values, params, policy }, POLICY_UNITS);
  const denials: Denial[] = [];
  for (const [index, rule] of policy.validations.entries()) {
    const result = rules.run(rule.program);
    yield rules.spent;
    if (result === SPENT) return failed(OUT_OF_BUDGET);
    if (result instanceof CelFault) {
      if (!ignoresFailures) denials.push({ index, message: resulted(rule.program, result), reason: undefined });
    } else if (result !== true) {
      const message = messageOf(rule, rules);
      yield rules.spent;
      if (message === undefined) return failed(`failed messageExpression: ${OUT_OF_BUDGET}`);
      denials.push({ index, message, reason: rule.validation.reason });
    }
  }
  if (policy.annotations.length > 0) return { denials, ...(yield* annotationsOf(question)) };
  return denials.length === 0 ? PASSED : { ...PASSED, denials };
}

/** 'unmet' = a condition is false; otherwise the first error, if there is one. One that is false outweighs errors. */
function* unmet({ conditions }: CompiledPolicy, evaluator: Evaluator): Generator<Units, string | undefined> {
  let fault: string | undefined;
  for (const { program } of conditions) {
    const result = evaluator.run(program);
    yield evaluator.spent;
    if (result === false) return 'unmet';
    if (result === SPENT) return OUT_OF_BUDGET;
    if (result instanceof CelFault) fault ??= resulted(program, result);
  }
  return fault;
}

function* annotationsOf({
  policy,
  ignoresFailures,
  values,
  params,
}: Question): Generator<Units, Pick<PolicyVerdict, 'annotations' | 'faults'>> {
  const evaluator = new Evaluator({ values, params, policy }, POLICY_UNITS);
  const annotations: { key: string; value: string }[] = [];
  const faults: Denial[] = [];
  for (const [index, { key, program }] of policy.annotations.entries()) {
    const result = evaluator.run(program);
    yield evaluator.spent;
    if (typeof result === 'string') {
      const value = result.trim().slice(0, MAX_ANNOTATION);
      if (value !== '') annotations.push({ key, value });
    } else if (result !== null && !ignoresFailures) {
      const message = result instanceof CelFault ? resulted(program, result) : OUT_OF_BUDGET;
      faults.push({ index, message, reason: undefined });
    }
  }
  return { annotations, faults };
}

/** What the rule's own expression says, else its message, else the rule. undefined = no units are left. */
function messageOf({ validation, message }: CompiledValidation, evaluator: Evaluator): string | undefined {
  const said = message === undefined ? undefined : evaluator.run(message);
  if (said === SPENT) return undefined;
  const text = typeof said === 'string' ? said.trim() : '';
  const usable = text !== '' && Buffer.byteLength(text) <= MAX_MESSAGE_BYTES && !text.includes('\n');
  if (usable) return text;
  return validation.message?.trim() || `failed expression: ${validation.expression.trim()}`;
}

function resulted({ source }: Program, { message }: CelFault): string {
  return `expression '${source}' resulted in error: ${message}`;
}

/** Runs expressions that share one purse. */
class Evaluator {
  readonly #variables: LazyVariables;
  readonly #activation: ReturnType<RequestValues['activation']>;
  readonly #purse: Purse;

  constructor({ values, params, policy }: Pick<Question, 'values' | 'params' | 'policy'>, units: number) {
    this.#variables = new LazyVariables(policy.variables);
    this.#activation = values.activation({ params, variables: this.#variables });
    this.#purse = new Purse(units);
  }

  /** What the last run has cost. */
  get spent(): Units {
    return this.#purse.spent;
  }

  run(program: Program): Evaluated {
    return this.#purse.run((budget) => {
      this.#variables.use(this.#activation, budget);
      return program.evaluate(this.#activation, budget);
    });
  }
}
