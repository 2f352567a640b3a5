/** Schema and validation of the match rules of policies and webhooks. */
import { checkName, checkQualifiedName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import { type Infer, list, overrideOptions, obj, oneOf, str } from '#kube/schema-dsl.ts';

export const matchCondition = obj(
  {
    expression: str(),
    name: str(),
  },
  { required: ['name', 'expression'] },
);

export const ruleWithOperations = obj({
  apiGroups: list(str(), { atomic: true }),
  apiVersions: list(str(), { atomic: true }),
  operations: list(oneOf(['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']), { atomic: true }),
  resources: list(str(), { atomic: true }),
  scope: oneOf(['*', 'Cluster', 'Namespaced'], { default: '*' }),
});

export const namedRuleWithOperations = obj(
  { ...ruleWithOperations.properties, resourceNames: list(str(), { atomic: true }) },
  { atomic: true },
);

export const matchResources = obj(
  {
    excludeResourceRules: list(namedRuleWithOperations, { atomic: true }),
    matchPolicy: oneOf(['Equivalent', 'Exact'], { default: 'Equivalent' }),
    namespaceSelector: overrideOptions(labelSelector, { default: {} }),
    objectSelector: overrideOptions(labelSelector, { default: {} }),
    resourceRules: list(namedRuleWithOperations, { atomic: true }),
  },
  { atomic: true },
);

type Rule = Infer<typeof ruleWithOperations>;
type NamedRule = Infer<typeof namedRuleWithOperations>;
type MatchResources = Infer<typeof matchResources>;
type MatchCondition = Infer<typeof matchCondition>;

const CONDITIONS_MAX = 64;

export function checkMatchResources(field: string, match: MatchResources | undefined): FieldError[] {
  if (match === undefined) return [];
  const { namespaceSelector, objectSelector, resourceRules = [], excludeResourceRules = [] } = match;
  return [
    ...checkLabelSelector(`${field}.namespaceSelector`, namespaceSelector),
    ...checkLabelSelector(`${field}.objectSelector`, objectSelector),
    ...resourceRules.flatMap((rule, i) => checkNamedRule(`${field}.resourceRules[${i}]`, rule)),
    ...excludeResourceRules.flatMap((rule, i) => checkNamedRule(`${field}.excludeResourceRules[${i}]`, rule)),
  ];
}

function checkNamedRule(field: string, rule: NamedRule): FieldError[] {
  const names = (rule.resourceNames ?? []).map((name, i) => [`${field}.resourceNames[${i}]`, name] as const);
  return [
    ...names.flatMap(([at, name]) => checkName(at, name, 'path-segment')),
    ...checkUnique(names),
    ...checkRule(field, rule),
  ];
}

export function checkRule(field: string, rule: Rule): FieldError[] {
  const { operations = [], apiGroups = [], apiVersions = [] } = rule;
  return [
    ...checkWildcard(`${field}.operations`, operations, 'operations'),
    ...checkWildcard(`${field}.apiGroups`, apiGroups, 'API groups'),
    ...checkWildcard(`${field}.apiVersions`, apiVersions, 'API versions'),
    ...apiVersions.flatMap((version, i) => (version === '' ? [requiredValue(`${field}.apiVersions[${i}]`)] : [])),
    ...checkResourceNames(`${field}.resources`, rule.resources ?? []),
  ];
}

function checkWildcard(field: string, values: readonly string[], what: string): FieldError[] {
  if (values.length === 0) return [requiredValue(field)];
  if (values.length === 1 || !values.includes('*')) return [];
  return [invalidValue(field, values, `if '*' is present, must not specify other ${what}`)];
}

/** Checks resource patterns, such as `pods`, `pods/*` and `*`. */
function checkResourceNames(field: string, names: readonly string[]): FieldError[] {
  if (names.length === 0) return [requiredValue(field)];
  const errors: FieldError[] = [];
  const wildcards = new Set<string>();
  for (const [i, name] of names.entries()) {
    const [resource = '', subresource] = name.split('/', 2);
    if (name === '') errors.push(requiredValue(`${field}[${i}]`));
    if (subresource === undefined) continue;
    for (const pattern of [`${resource}/*`, `*/${subresource}`]) {
      if (!wildcards.has(pattern)) continue;
      errors.push(invalidValue(`${field}[${i}]`, name, `if '${pattern}' is present, must not specify ${name}`));
    }
    if (resource === '*' || subresource === '*') wildcards.add(name);
  }
  if (names.length > 1 && names.includes('*/*')) {
    errors.push(invalidValue(field, names, "if '*/*' is present, must not specify other resources"));
  }
  if (names.includes('*') && names.some((name) => name !== '*' && !name.includes('/'))) {
    const text = "if '*' is present, must not specify other resources without subresources";
    errors.push(invalidValue(field, names, text));
  }
  return errors;
}

/** Checks only that expressions are present. The admission chain compiles them. */
export function checkMatchConditions(field: string, conditions: readonly MatchCondition[] = []): FieldError[] {
  const errors: FieldError[] = [];
  if (conditions.length > CONDITIONS_MAX) errors.push(tooMany(field, conditions.length, CONDITIONS_MAX));
  for (const [i, { name, expression }] of conditions.entries()) {
    if (expression.trim() === '') errors.push(requiredValue(`${field}[${i}].expression`));
    errors.push(
      ...(name === '' ? [requiredValue(`${field}[${i}].name`)] : checkQualifiedName(`${field}[${i}].name`, name)),
    );
  }
  const names = conditions.map(({ name }, i) => [`${field}[${i}].name`, name] as const);
  return [...errors, ...checkUnique(names.filter(([, name]) => name !== ''))];
}
