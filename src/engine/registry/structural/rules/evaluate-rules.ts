/**
 * Asks the rules of a schema about an object. Each rule may spend what Kubernetes lets a call spend, and all of them
 * together what it lets an object spend: then the rest is not asked, and the object is refused. A generator that hands
 * over after each rule, so that whoever drives it can let others have the process (admission/expressions/slices.ts).
 */
import { adaptJson } from '#cel/evaluate/adapt-json.ts';
import type { Activation } from '#cel/compile.ts';
import { CelFault, CelOptional, type CelValue } from '#cel/value.ts';
import { Purse, OUT_OF_BUDGET, SPENT } from '#engine/admission/expressions/purse.ts';
import type { Units } from '#engine/admission/expressions/slices.ts';
import { Correlation, OldItems } from '#engine/registry/structural/correlation.ts';
import type { CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { limitFault, messageOf, ruleError, ruleText } from '#engine/registry/structural/rules/rule-message.ts';
import type { RuleNode } from '#engine/registry/structural/rules/rule-tree.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import type { Schema } from '#kube/schema.ts';

/** For all rules of an object. */
const OBJECT_UNITS = 10_000_000;
/** Enough for any reader. */
const MAX_ERRORS = 256;

export interface RuleVerdict {
  readonly errors: readonly FieldError[];
  /** What is wrong but was so before: `spec.size: Invalid value: ...`. */
  readonly warnings: readonly string[];
}

export interface RuleQuestion {
  readonly object: unknown;
  /** undefined = there is none. */
  readonly old: unknown;
  readonly lenient: boolean;
  /** Where it stands; '' = it is an object of its own. */
  readonly path?: string;
  /** Where several questions share one. */
  readonly purse?: Purse;
}

export function* evaluateRules(
  root: RuleNode,
  schema: Schema,
  { object, old, lenient, path = '', purse = new Purse(OBJECT_UNITS) }: RuleQuestion,
): Generator<Units, RuleVerdict> {
  const walk = new Walk(purse);
  const here = lenient && old !== undefined ? new Correlation(object, old, schema) : undefined;
  yield* walk.node(root, { value: object, old, path, here, around: undefined });
  return { errors: walk.errors, warnings: walk.warnings };
}

/** Where the walk stands. */
interface Place {
  readonly value: unknown;
  /** undefined = there is nothing to compare with. */
  readonly old: unknown;
  readonly path: string;
  /** For forgiving what did not change: this value beside its old one, or the nearest around it that has one. */
  readonly here: Correlation | undefined;
  readonly around: Correlation | undefined;
}

class Walk {
  readonly errors: FieldError[] = [];
  readonly warnings: string[] = [];
  readonly #purse: Purse;
  /** No units are left: nobody is asked any more. */
  #ended = false;

  constructor(purse: Purse) {
    this.#purse = purse;
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
        ...inside(place, index),
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
      const path = field === undefined ? `${place.path}[${key}]` : joined(place.path, key);
      yield* this.node(node, { value: object[key], old: old ?? undefined, path, ...inside(place, key) });
      if (this.#ended) return;
    }
  }

  *#ask({ rules, schema }: RuleNode, place: Place): Generator<Units> {
    const self = adaptJson(place.value, schema);
    const hasOld = place.old !== undefined;
    const oldSelf = hasOld && rules.some(({ usesOldSelf }) => usesOldSelf) ? adaptJson(place.old, schema) : undefined;
    for (const rule of rules) {
      if (rule.usesOldSelf && !hasOld && rule.rule.optionalOldSelf !== true) continue;
      this.#askOne(rule, schema, place, activationOf(rule, self, oldSelf));
      yield this.#purse.spent;
      if (this.#ended) return;
    }
  }

  #askOne(compiled: CompiledRule, schema: Schema, place: Place, activation: Activation): void {
    const type: string = schema.type ?? '';
    const { rule, program, failure, usesOldSelf } = compiled;
    const at = place.path === '' ? '<nil>' : place.path;
    if (failure !== undefined) this.#refuse(invalidValue(at, type, `rule compile error: ${failure}`));
    if (program === undefined) return;
    const result = this.#purse.run((budget) => program.evaluate(activation, budget));
    if (result === true) return;
    if (result === SPENT) return this.#end(invalidValue(at, type, OUT_OF_BUDGET));
    if (result instanceof CelFault) {
      const error = invalidValue(at, type, faultText(result, ruleText(rule)));
      return limitFault(result) ? this.#end(error) : this.#refuse(error);
    }
    const told = messageOf(compiled, (message) => this.#purse.run((budget) => message.evaluate(activation, budget)));
    const where = compiled.fieldPath === '' ? at : joined(place.path, compiled.fieldPath);
    const error = told.spent ? invalidValue(where, type, told.text) : ruleError(rule, where, type, told.text);
    if (!usesOldSelf && (place.here ?? place.around)?.isEqual === true) {
      if (this.warnings.length < MAX_ERRORS) this.warnings.push(`${error.field}: ${error.message}`);
    } else this.#refuse(error);
    if (told.spent) this.#ended = true;
  }

  #refuse(error: FieldError): void {
    if (this.errors.length < MAX_ERRORS) this.errors.push(error);
  }

  #end(error: FieldError): void {
    this.#refuse(error);
    this.#ended = true;
  }
}

function inside({ here, around }: Place, key: string | number): Pick<Place, 'here' | 'around'> {
  if (here === undefined) return { here, around };
  // What both objects were converted to cannot be told to have changed.
  if (around === undefined && (key === 'apiVersion' || key === 'kind')) return { here: undefined, around: undefined };
  return { here: here.at(key), around: here };
}

function joined(path: string, field: string): string {
  return path === '' ? field : `${path}.${field}`;
}

function activationOf({ rule }: CompiledRule, self: CelValue, oldSelf: CelValue | undefined): Activation {
  const old = rule.optionalOldSelf === true ? new CelOptional(oldSelf) : oldSelf;
  return (name) => (name === 'self' ? self : name === 'oldSelf' ? old : undefined);
}

function faultText(fault: CelFault, rule: string): string {
  const { message } = fault;
  if (message.startsWith('no such overload')) {
    return `'${message}': call arguments did not match a supported operator, function or macro signature for rule: ${rule}`;
  }
  if (limitFault(fault)) {
    return `'${message}': no further validation rules will be run due to call cost exceeds limit for rule: ${rule}`;
  }
  return `${message} evaluating rule: ${rule}`;
}
