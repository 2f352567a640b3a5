/**
 * The compiled rules of a schema (x-kubernetes-validations), as a tree of the nodes that have rules or contain some.
 * `self` is the value of a node, `oldSelf` the value it replaces: rules that use it are evaluated only if there is an
 * old value. evaluate-rules.ts walks the tree.
 */
import { ruleType } from '#cel/check/schema-type.ts';
import { withObjectNames } from '#cel/check/object-meta.ts';
import { escapeFieldName } from '#cel/check/field-names.ts';
import type { CostBudget } from '#cel/limits/cost-budget.ts';
import type { Units } from '#cel/limits/slices.ts';
import { compileUnits } from '#cel/limits/source-limits.ts';
import { valueSchema } from '#engine/registry/structural/keywords.ts';
import { compileRule, type CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { evaluateRules, type RuleNode, type RuleVerdict } from '#engine/registry/structural/rules/evaluate-rules.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export interface RuleValidator {
  /** `lenient`: errors in unchanged values become warnings. Yields after each rule (slices.ts). */
  run(
    object: Record<string, unknown>,
    old: Record<string, unknown> | undefined,
    options?: { readonly lenient?: boolean },
  ): Generator<Units, RuleVerdict>;
}

const known = new WeakMap<Schema, boolean>();

/** Reports whether a schema has rules or contains some. Schemas are immutable. */
export function hasRules(schema: Schema): boolean {
  let has = known.get(schema);
  if (has === undefined) known.set(schema, (has = findRules(schema)));
  return has;
}

function findRules(schema: Schema): boolean {
  if ((schema['x-kubernetes-validations'] ?? []).length > 0) return true;
  if (schema.items !== undefined && hasRules(schema.items)) return true;
  const values = valueSchema(schema);
  if (values !== undefined && hasRules(values)) return true;
  return Object.values(schema.properties ?? {}).some(hasRules);
}

/** Compiles the rules of a whole object. */
export function compileRules(schema: Schema): RuleValidator {
  const root = nodeOf(schema, true);
  return { run: (object, old, { lenient = false } = {}) => evaluateRules(root, schema, { object, old, lenient }) };
}

/**
 * Checks a schema's default against its own rules, both as an unchanged and as a new value. `path` is that of the
 * default.
 */
export function checkDefaultAgainstRules(schema: Schema, path: string, costBudget: CostBudget): FieldError[] {
  const node = nodeOf(schema, schema['x-kubernetes-embedded-resource'] === true);
  const evaluate = (old: unknown) =>
    runToEnd(evaluateRules(node, schema, { object: schema.default, old, lenient: false, path, costBudget }));
  const kept = evaluate(schema.default);
  return [...(kept.errors.length > 0 ? kept : evaluate(undefined)).errors];
}

/** Runs without yielding: the budget is small. */
function runToEnd<T>(work: Generator<unknown, T>): T {
  for (;;) {
    const step = work.next();
    if (step.done === true) return step.value;
  }
}

function nodeOf(schema: Schema, isResource: boolean): RuleNode {
  const sources = (schema['x-kubernetes-validations'] ?? []).map(({ rule }) => rule);
  const values = valueSchema(schema);
  let compiled: readonly CompiledRule[] | undefined = sources.length === 0 ? [] : undefined;
  return {
    schema: isResource ? withObjectNames(schema) : schema,
    get rules() {
      return (compiled ??= rulesOf(schema, isResource));
    },
    get compileUnits() {
      return compiled === undefined ? compileUnits(sources) : 0;
    },
    fields: fieldNodes(schema),
    values: values && inner(values),
    items: schema.items && inner(schema.items),
  };
}

/** Rules of nested schemas: a default may contain others, each of which is also checked separately. */
const compiledRules = new WeakMap<Schema, readonly CompiledRule[]>();

function rulesOf(schema: Schema, isResource: boolean): readonly CompiledRule[] {
  const known = isResource ? undefined : compiledRules.get(schema);
  if (known !== undefined) return known;
  const rules = compiledOf(schema, isResource);
  if (!isResource) compiledRules.set(schema, rules);
  return rules;
}

function compiledOf(schema: Schema, isResource: boolean): readonly CompiledRule[] {
  const self = ruleType(schema, 'selfType', isResource);
  if (self === undefined) return [];
  return (schema['x-kubernetes-validations'] ?? []).map((rule) => compileRule(rule, { schema, self }));
}

function inner(schema: Schema): RuleNode | undefined {
  return hasRules(schema) ? nodeOf(schema, schema['x-kubernetes-embedded-resource'] === true) : undefined;
}

function fieldNodes({ properties = {} }: Schema): ReadonlyMap<string, RuleNode> | undefined {
  const nodes = new Map<string, RuleNode>();
  for (const [name, property] of Object.entries(properties)) {
    const node = isVisible(name, property) ? inner(property) : undefined;
    if (node !== undefined) nodes.set(name, node);
  }
  return nodes.size === 0 ? undefined : nodes;
}

/** Rules of fields that expressions cannot access are ignored. */
function isVisible(name: string, property: Schema): boolean {
  if (name === '__proto__') return false;
  return escapeFieldName(name) === undefined || ruleType(property, name, false) !== undefined;
}
