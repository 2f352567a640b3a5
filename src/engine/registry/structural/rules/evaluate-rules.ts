/**
 * Evaluates the rules of a schema on an object. Each rule may cost what Kubernetes allows per call, and all rules
 * together what it allows per object: beyond that, the remaining rules are skipped and the object is rejected. A
 * generator that yields after each rule, so that the caller can let other requests run
 * (cel/limits/slices.ts).
 */
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import type { Activation } from '#cel/environment.ts';
import { CelFault, CelOptional, type CelValue } from '#cel/value.ts';
import { CostBudget, OUT_OF_BUDGET, SPENT } from '#cel/limits/cost-budget.ts';
import type { Units } from '#cel/limits/slices.ts';
import { Correlation, OldItems } from '#engine/registry/structural/correlation.ts';
import type { CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import {
  isCostLimitExceeded,
  buildRuleMessage,
  ruleError,
  ruleText,
} from '#engine/registry/structural/rules/rule-message.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

/** Budget for all rules of an object. */
const OBJECT_UNITS = 10_000_000;
/** Enough for any reader. */
const MAX_ERRORS = 256;

/** The rules of a schema and of the schemas within it. rule-tree.ts builds it. */
export interface RuleNode {
  /** Includes the fields of an object if the node is a resource. */
  readonly schema: Schema;
  /** Compiled on first use: a schema may have many rules, and compiling all at once would block other requests. */
  readonly rules: readonly CompiledRule[];
  /** Cost of the next access to `rules`. */
  readonly compileUnits: Units;
  readonly fields: ReadonlyMap<string, RuleNode> | undefined;
  readonly values: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

export interface RuleVerdict {
  readonly errors: readonly FieldError[];
  /** Errors in unchanged values: `spec.size: Invalid value: ...`. */
  readonly warnings: readonly string[];
}

interface RuleEvaluation {
  readonly object: unknown;
  /** Undefined if there is no old object. */
  readonly old: unknown;
  readonly lenient: boolean;
  /** Path of the value; '' = it is a whole object. */
  readonly path?: string;
  /** Set if several evaluations share a budget. */
  readonly costBudget?: CostBudget;
}

export function* evaluateRules(
  root: RuleNode,
  schema: Schema,
  { object, old, lenient, path = '', costBudget = new CostBudget(OBJECT_UNITS) }: RuleEvaluation,
): Generator<Units, RuleVerdict> {
  const walk = new Walk(costBudget);
  const here = lenient && old !== undefined ? new Correlation(object, old, schema) : undefined;
  yield* walk.node(root, { value: object, old, path, here, around: undefined });
  return { errors: walk.errors, warnings: walk.warnings };
}

/** The position of the walk. */
interface Place {
  readonly value: unknown;
  /** Undefined if there is nothing to compare with. */
  readonly old: unknown;
  readonly path: string;
  /** To ignore unchanged values: the pair of this value, or of the nearest enclosing value that has one. */
  readonly here: Correlation | undefined;
  readonly around: Correlation | undefined;
}

class Walk {
  readonly errors: FieldError[] = [];
  readonly warnings: string[] = [];
  readonly #costBudget: CostBudget;
  /** True if the budget is spent, so that no more rules are evaluated. */
  #ended = false;

  constructor(costBudget: CostBudget) {
    this.#costBudget = costBudget;
  }

  *node(node: RuleNode, place: Place): Generator<Units> {
    const { value } = place;
    if (value === undefined || value === null) return;
    const { compileUnits } = node;
    if (compileUnits > 0) yield compileUnits;
    if (node.rules.length > 0) yield* this.#ask(node, place);
    if (this.#ended) return;
    if (Array.isArray(value)) yield* this.#items(node, value, place);
    else if (isRecord(value)) yield* this.#fields(node, value, place);
  }

  *#items({ items, schema }: RuleNode, list: readonly unknown[], place: Place): Generator<Units> {
    if (items === undefined) return;
    const isMap = schema['x-kubernetes-list-type'] === 'map';
    const before = isMap && Array.isArray(place.old) ? new OldItems(place.old, schema) : undefined;
    for (const [index, value] of list.entries()) {
      yield* this.node(items, {
        value,
        old: before?.get(value),
        path: `${place.path}[${index}]`,
        ...descend(place, index),
      });
      if (this.#ended) return;
    }
  }

  *#fields({ fields, values }: RuleNode, object: Record<string, unknown>, place: Place): Generator<Units> {
    if (fields === undefined && values === undefined) return;
    for (const key of Object.keys(object)) {
      const field = fields?.get(key);
      const node = field ?? values;
      if (node === undefined) continue;
      const old = isRecord(place.old) && Object.hasOwn(place.old, key) ? place.old[key] : undefined;
      const path = field === undefined ? `${place.path}[${key}]` : joinPath(place.path, key);
      yield* this.node(node, { value: object[key], old: old ?? undefined, path, ...descend(place, key) });
      if (this.#ended) return;
    }
  }

  *#ask({ rules, schema }: RuleNode, place: Place): Generator<Units> {
    const self = adaptJson(place.value, schema);
    const hasOld = place.old !== undefined;
    const oldSelf = hasOld && rules.some(({ usesOldSelf }) => usesOldSelf) ? adaptJson(place.old, schema) : undefined;
    for (const rule of rules) {
      if (rule.usesOldSelf && !hasOld && rule.rule.optionalOldSelf !== true) continue;
      this.#evaluateOne(rule, schema, place, activationOf(rule, self, oldSelf));
      yield this.#costBudget.spent;
      if (this.#ended) return;
    }
  }

  #evaluateOne(compiled: CompiledRule, schema: Schema, place: Place, activation: Activation): void {
    const type: string = schema.type ?? '';
    const { rule, program, failure, usesOldSelf } = compiled;
    const at = place.path === '' ? '<nil>' : place.path;
    if (failure !== undefined) this.#addError(invalidValue(at, type, `rule compile error: ${failure}`));
    if (program === undefined) return;
    const result = this.#costBudget.run((budget) => program.evaluate(activation, budget));
    if (result === true) return;
    if (result === SPENT) return this.#end(invalidValue(at, type, OUT_OF_BUDGET));
    if (result instanceof CelFault) {
      const error = invalidValue(at, type, describeEvaluationError(result, ruleText(rule)));
      return isCostLimitExceeded(result) ? this.#end(error) : this.#addError(error);
    }
    const outcome = buildRuleMessage(compiled, (message) =>
      this.#costBudget.run((budget) => message.evaluate(activation, budget)),
    );
    const where = compiled.fieldPath === '' ? at : joinPath(place.path, compiled.fieldPath);
    const error = outcome.spent ? invalidValue(where, type, outcome.text) : ruleError(rule, where, type, outcome.text);
    if (!usesOldSelf && (place.here ?? place.around)?.isEqual === true) {
      if (this.warnings.length < MAX_ERRORS) this.warnings.push(`${error.field}: ${error.message}`);
    } else this.#addError(error);
    if (outcome.spent) this.#ended = true;
  }

  #addError(error: FieldError): void {
    if (this.errors.length < MAX_ERRORS) this.errors.push(error);
  }

  #end(error: FieldError): void {
    this.#addError(error);
    this.#ended = true;
  }
}

function descend({ here, around }: Place, key: string | number): Pick<Place, 'here' | 'around'> {
  if (here === undefined) return { here, around };
  // Both objects were converted to the same apiVersion and kind, so these never count as changed.
  if (around === undefined && (key === 'apiVersion' || key === 'kind')) return { here: undefined, around: undefined };
  return { here: here.at(key), around: here };
}

function joinPath(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

function activationOf({ rule }: CompiledRule, self: CelValue, oldSelf: CelValue | undefined): Activation {
  const old = rule.optionalOldSelf === true ? new CelOptional(oldSelf) : oldSelf;
  return (name) => (name === 'self' ? self : name === 'oldSelf' ? old : undefined);
}

function describeEvaluationError(error: CelFault, rule: string): string {
  const { message } = error;
  if (message.startsWith('no such overload')) {
    return `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${rule}`;
  }
  if (isCostLimitExceeded(error)) {
    return `'${message}': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`;
  }
  return `${message} evaluating rule: ${rule}`;
}
