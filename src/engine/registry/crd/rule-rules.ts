/**
 * Checks the rules of a schema (x-kubernetes-validations): they compile, use `oldSelf` only where an old value can be
 * correlated, and are cheap enough for the largest object. Kubernetes' messages.
 */
import { CheckBudget } from '#cel/limits/check-budget.ts';
import { ruleType } from '#cel/check/schema-type.ts';
import { MAX_REQUEST_BYTES, type SizeCache, estimateSizes, type SizeEstimate } from '#cel/estimate/schema-sizes.ts';
import { structuralBranches } from '#engine/registry/crd/schema-tree.ts';
import { checkCost, TotalCost } from '#engine/registry/crd/rule-costs.ts';
import { compileRule, type CompiledRule } from '#engine/registry/structural/rules/compile-rule.ts';
import { hasRules } from '#engine/registry/structural/rules/rule-tree.ts';
import { BoundedCache } from '#lib/bounded-cache.ts';
import { type FieldError, forbiddenField, invalidValue } from '#kube/field-error.ts';
import type { Schema, ValidationRule } from '#kube/schema.ts';

/** Limits for one version: its rules are compiled synchronously, while no other request is served. */
const MAX_RULES = 500;
const MAX_TOTAL_LENGTH = 30_000;
/** In multiples of the budget for one expression. */
const CHECK_TIMES = 5;

/** Definitions are written again for their status; the result for a schema does not change. */
const found = new BoundedCache<string, readonly FieldError[]>({ maxEntries: 64, maxWeight: 4 * 1024 * 1024 });

/** For schemas that are otherwise valid. `path` is that of the root. */
export function checkValidationRules(root: Schema, path: string): readonly FieldError[] {
  if (!hasRules(root)) return [];
  const key = `${path} ${JSON.stringify(root)}`;
  let errors = found.get(key);
  if (errors === undefined) found.set(key, (errors = checkUncached(root, path)), key.length);
  return errors;
}

function checkUncached(root: Schema, path: string): readonly FieldError[] {
  const sources = sourcesOf(root);
  const length = sources.reduce((sum, source) => sum + source.length, 0);
  if (sources.length > MAX_RULES || length > MAX_TOTAL_LENGTH) {
    const most = `expected at most ${MAX_RULES} with ${MAX_TOTAL_LENGTH} characters`;
    return [forbiddenField(path, `has ${sources.length} expressions with ${length} characters; ${most}`)];
  }
  const walk = new RuleWalk();
  walk.visit({ schema: root, path, isResource: true, cardinality: 1, uncorrelatable: undefined });
  return [...walk.errors, ...walk.total.errors(path)];
}

function sourcesOf(schema: Schema): string[] {
  const rules = schema['x-kubernetes-validations'] ?? [];
  const own = rules.flatMap(({ rule, messageExpression }) => (messageExpression ? [rule, messageExpression] : [rule]));
  return [...own, ...structuralBranches(schema, '').flatMap((branch) => sourcesOf(branch.schema))];
}

interface Place {
  readonly schema: Schema;
  readonly path: string;
  readonly isResource: boolean;
  /** Maximum number of such values in one object; undefined = unbounded. */
  readonly cardinality: number | undefined;
  /** The path of the enclosing list whose items cannot be correlated with old items. */
  readonly uncorrelatable: string | undefined;
}

class RuleWalk {
  readonly errors: FieldError[] = [];
  readonly total = new TotalCost();
  readonly #sizes: SizeCache = new Map();
  readonly #checkBudget = new CheckBudget(CHECK_TIMES);

  visit(place: Place): void {
    const { schema, path, cardinality } = place;
    const times = elementsOf(schema);
    for (const branch of structuralBranches(schema, path)) {
      if (!hasRules(branch.schema)) continue;
      const hidesOld = branch.schema === schema.items && schema['x-kubernetes-list-type'] !== 'map';
      this.visit({
        schema: branch.schema,
        path: branch.path,
        isResource: branch.schema['x-kubernetes-embedded-resource'] === true,
        cardinality: cardinality === undefined || times === undefined ? undefined : cardinality * times,
        uncorrelatable: place.uncorrelatable ?? (hidesOld ? path : undefined),
      });
    }
    this.#checkRules(place);
  }

  #checkRules(place: Place): void {
    const { schema, path, isResource } = place;
    const rules = schema['x-kubernetes-validations'] ?? [];
    if (rules.length === 0) return;
    const self = ruleType(schema, 'selfType', isResource);
    const sizes = estimateSizes(schema, isResource, this.#sizes);
    if (self === undefined || sizes === undefined) {
      this.errors.push(typeInformationError(`${path}.x-kubernetes-validations`));
      return;
    }
    for (const [i, rule] of rules.entries()) {
      const compiled = compileRule(rule, { schema, self, sizes, checkBudget: this.#checkBudget });
      this.#checkRule(compiled, place, `${path}.x-kubernetes-validations[${i}]`, sizes);
    }
  }

  #checkRule(compiled: CompiledRule, place: Place, path: string, sizes: SizeEstimate): void {
    const { rule, failure, messageFailure } = compiled;
    const times = place.cardinality ?? Math.floor(MAX_REQUEST_BYTES / (sizes.minBytes + 1));
    this.#charge(`${path}.rule`, 'estimated rule cost', compiled.cost * times);
    if (failure !== undefined) this.errors.push(invalidRule(`${path}.rule`, rule, failure));
    if (messageFailure !== undefined) this.errors.push(invalidRule(`${path}.messageExpression`, rule, messageFailure));
    else if (compiled.message !== undefined) {
      this.#charge(`${path}.messageExpression`, 'estimated messageExpression cost', compiled.messageCost);
    }
    if (!compiled.usesOldSelf) {
      if (rule.optionalOldSelf === undefined) return;
      const detail = 'may not be set if oldSelf is not used in rule';
      this.errors.push(invalidValue(`${path}.optionalOldSelf`, rule.optionalOldSelf, detail));
    } else if (place.uncorrelatable !== undefined) {
      const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${place.uncorrelatable}`;
      this.errors.push(invalidValue(`${path}.rule`, rule.rule, detail));
    }
  }

  #charge(path: string, what: string, cost: number): void {
    const error = checkCost(path, what, cost);
    if (error !== undefined) this.errors.push(error);
    this.total.add(path, cost);
  }
}

/** Returns the maximum number of elements of a list or map; undefined = unbounded. */
function elementsOf({ type, additionalProperties, maxProperties, maxItems }: Schema): number | undefined {
  const bound = (most: number | undefined) => (most === undefined ? undefined : Math.max(0, most));
  if (type === 'array') return bound(maxItems);
  return type === 'object' && additionalProperties !== undefined ? bound(maxProperties) : 1;
}

function typeInformationError(field: string): FieldError {
  const why = 'unable to convert structural schema to CEL declarations';
  const message = `Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: ${why}`;
  return { reason: 'FieldValueInvalid', field, message };
}

/** Kubernetes prints the whole rule in Go syntax. */
function invalidRule(field: string, rule: ValidationRule, detail: string): FieldError {
  return { reason: 'FieldValueInvalid', field, message: `Invalid value: ${goRule(rule)}: ${detail}` };
}

function goRule({ rule, message, messageExpression, reason, fieldPath, optionalOldSelf }: ValidationRule): string {
  const text = (value: string | undefined) => JSON.stringify(value ?? '');
  const pointer = (type: string, value: unknown) => `(*${type})(${value === undefined ? 'nil' : '0xc000000000'})`;
  const fields = [
    `Rule:${text(rule)}`,
    `Message:${text(message)}`,
    `MessageExpression:${text(messageExpression)}`,
    `Reason:${pointer('apiextensions.FieldValueErrorReason', reason)}`,
    `FieldPath:${text(fieldPath)}`,
    `OptionalOldSelf:${pointer('bool', optionalOldSelf)}`,
  ];
  return `apiextensions.ValidationRule{${fields.join(', ')}}`;
}
