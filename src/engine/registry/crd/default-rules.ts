/** Checks that a default satisfies its own schema: pruned and valid. For structural schemas only. */
import { structuralBranches } from '#engine/registry/crd/schema-tree.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { compilePrune } from '#engine/registry/structural/prune.ts';
import { CostBudget } from '#cel/limits/cost-budget.ts';
import { hasRules, checkDefaultAgainstRules } from '#engine/registry/structural/rules/rule-tree.ts';
import { hasDefault } from '#engine/registry/structural/keywords.ts';
import { deepClone } from '#kube/deep.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export function checkDefaults(schema: Schema, path: string): FieldError[] {
  const own = hasDefault(schema) ? checkValue(schema, `${path}.default`) : [];
  const inside = structuralBranches(schema, path).flatMap((branch) => checkDefaults(branch.schema, branch.path));
  return [...own, ...inside];
}

/** Budget for all defaults of a schema: they are checked synchronously, while no other request is served. */
const RULE_UNITS = 2_000_000;

/**
 * Checks defaults against the validation rules of a schema. For schemas that are otherwise valid, including their
 * rules.
 */
export function checkDefaultsAgainstRules(
  schema: Schema,
  path: string,
  costBudget = new CostBudget(RULE_UNITS),
): FieldError[] {
  if (!hasRules(schema)) return [];
  const own = hasDefault(schema) ? checkDefaultAgainstRules(schema, `${path}.default`, costBudget) : [];
  const inside = structuralBranches(schema, path).flatMap((branch) =>
    checkDefaultsAgainstRules(branch.schema, branch.path, costBudget),
  );
  return [...own, ...inside];
}

function checkValue(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const value: unknown = deepClone(schema.default);
  if (typeof value === 'object' && value !== null) {
    let isPruned = false;
    compilePrune(schema, schema['x-kubernetes-embedded-resource'] === true)(value, () => (isPruned = true));
    if (isPruned) errors.push(invalidValue(path, schema.default, 'must not have unknown fields'));
  }
  // Wrapped in an object, so that any JSON value can be checked.
  const holder = compileSchema({ type: 'object', properties: { default: schema } }, { root: false });
  for (const error of holder.validate({ default: schema.default })) {
    const field = error.field === '<nil>' ? path : path + error.field.slice('default'.length);
    errors.push({ ...error, field });
  }
  return errors;
}
