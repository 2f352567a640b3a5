/**
 * The rules of a schema (x-kubernetes-validations), compiled once, as a tree of the nodes that have some or have them
 * inside. `self` is the value of a node, `oldSelf` what it replaces: rules that name it are asked only where there is
 * something to compare with. evaluate-rules.ts walks it.
 */
import { ruleType } from '#cel/check/schema-type.ts';
import { withObjectNames } from '#cel/check/object-meta.ts';
import { escapeFieldName } from '#cel/check/field-names.ts';
import type { Purse } from '#engine/admission/expressions/purse.ts';
import type { Units } from '#engine/admission/expressions/slices.ts';
import { compileUnits } from '#engine/admission/expressions/source-limits.ts';
import { valueSchema } from '#engine/registry/structural/keywords.ts';
import { compileRule, type CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { evaluateRules, type RuleVerdict } from '#engine/registry/structural/rules/evaluate-rules.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export interface RuleNode {
  /** With the names of an object, where it is one. */
  readonly schema: Schema;
  /** Compiled when they are first asked: a schema may have many, and nobody is to wait for all of them at once. */
  readonly rules: readonly CompiledRule[];
  /** What the next look at `rules` takes. */
  readonly compileUnits: Units;
  readonly fields: ReadonlyMap<string, RuleNode> | undefined;
  readonly values: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

export interface RuleValidator {
  /** `lenient`: what did not change may be wrong, and is only warned of. Hands over after each rule (slices.ts). */
  run(
    object: Record<string, unknown>,
    old: Record<string, unknown> | undefined,
    options?: { readonly lenient?: boolean },
  ): Generator<Units, RuleVerdict>;
}

const known = new WeakMap<Schema, boolean>();

/** Whether a schema has rules, or has them inside. Schemas do not change. */
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

/** Of a whole object. */
export function compileRules(schema: Schema): RuleValidator {
  const root = nodeOf(schema, true);
  return { run: (object, old, { lenient = false } = {}) => evaluateRules(root, schema, { object, old, lenient }) };
}

/** What a schema's own rules say against its default, as a change of nothing and as a new value. `path` is its own. */
export function ruleFaultsOf(schema: Schema, path: string, purse: Purse): FieldError[] {
  const node = nodeOf(schema, schema['x-kubernetes-embedded-resource'] === true);
  const ask = (old: unknown) =>
    settled(evaluateRules(node, schema, { object: schema.default, old, lenient: false, path, purse }));
  const kept = ask(schema.default);
  return [...(kept.errors.length > 0 ? kept : ask(undefined)).errors];
}

/** At one go: the purse is small. */
function settled<T>(work: Generator<unknown, T>): T {
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

/** Of parts of objects: a default may hold others, each of which is judged by itself, too. */
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

/** What expressions cannot see has no rules that count. */
function isVisible(name: string, property: Schema): boolean {
  if (name === '__proto__') return false;
  return escapeFieldName(name) === undefined || ruleType(property, name, false) !== undefined;
}
