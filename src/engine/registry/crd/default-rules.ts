/** A default must itself be what its schema asks for: pruned and valid. For schemas that are structural. */
import { structuralBranches } from '#engine/registry/crd/schema-tree.ts';
import { compileSchema } from '#engine/registry/structural/compile.ts';
import { compilePrune } from '#engine/registry/structural/prune.ts';
import { Purse } from '#engine/admission/expressions/purse.ts';
import { hasRules, ruleFaultsOf } from '#engine/registry/structural/rules/rule-tree.ts';
import { hasDefault } from '#engine/registry/structural/keywords.ts';
import { deepClone } from '#kube/deep.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import type { Schema } from '#kube/schema.ts';

export function defaultFaults(schema: Schema, path: string): FieldError[] {
  const own = hasDefault(schema) ? valueFaults(schema, `${path}.default`) : [];
  const inside = structuralBranches(schema, path).flatMap((branch) => defaultFaults(branch.schema, branch.path));
  return [...own, ...inside];
}

/** For all defaults of a schema: they are judged at one go, and nobody else is served meanwhile. */
const RULE_UNITS = 2_000_000;

/** What the rules of a schema say against its defaults. For schemas that are right otherwise, their rules too. */
export function defaultRuleFaults(schema: Schema, path: string, purse = new Purse(RULE_UNITS)): FieldError[] {
  if (!hasRules(schema)) return [];
  const own = hasDefault(schema) ? ruleFaultsOf(schema, `${path}.default`, purse) : [];
  const inside = structuralBranches(schema, path).flatMap((branch) =>
    defaultRuleFaults(branch.schema, branch.path, purse),
  );
  return [...own, ...inside];
}

function valueFaults(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const value: unknown = deepClone(schema.default);
  if (typeof value === 'object' && value !== null) {
    let isPruned = false;
    compilePrune(schema, schema['x-kubernetes-embedded-resource'] === true)(value, () => (isPruned = true));
    if (isPruned) errors.push(invalidValue(path, schema.default, 'must not have unknown fields'));
  }
  // Inside of a map of one entry, so that any JSON value can be checked.
  const holder = compileSchema({ type: 'object', properties: { default: schema } }, { root: false });
  for (const error of holder.validate({ default: schema.default })) {
    const field = error.field === '<nil>' ? path : path + error.field.slice('default'.length);
    errors.push({ ...error, field });
  }
  return errors;
}
