/** Schema and validation of the match rules of policies and webhooks. */
import { apiType, inlined, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { checkName, checkQualifiedName, checkUnique } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { type FieldError, invalidValue, requiredValue, tooMany } from '#kube/field-error.ts';
import { type Infer, list, overrideOptions, oneOf, str } from '#kube/schema-dsl.ts';

export const matchCondition = apiType(
  'admissionregistration.v1.MatchCondition',
  'A condition that must be true for a request to be processed.',
  {
    name: required(1, str(), 'Name of the condition.'),
    expression: required(2, str(), 'CEL expression that evaluates to a bool.'),
  },
);

const rule = {
  operations: optional(
    1,
    list(oneOf(['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']), { atomic: true }),
    'Operations to match: CREATE, UPDATE, DELETE, CONNECT. * matches all operations.',
  ),
  ...inlined(2, 'admissionregistration.v1.Rule', {
    apiGroups: optional(1, list(str(), { atomic: true }), 'API groups of the resources. * matches all groups.'),
    apiVersions: optional(2, list(str(), { atomic: true }), 'API versions of the resources. * matches all versions.'),
    resources: optional(
      3,
      list(str(), { atomic: true }),
      'Resources to match. pods/* matches all subresources of pods, */* all resources and subresources.',
    ),
    scope: pointer(
      4,
      oneOf(['*', 'Cluster', 'Namespaced'], { default: '*' }),
      'Scope of the resources: Cluster, Namespaced or * for both.',
    ),
  }),
};

export const ruleWithOperations = apiType(
  'admissionregistration.v1.RuleWithOperations',
  'Operations on resources.',
  rule,
);

const namedRuleWithOperations = apiType(
  'admissionregistration.v1.NamedRuleWithOperations',
  { description: 'Operations on resources, optionally limited to some object names.', atomic: true },
  {
    resourceNames: optional(1, list(str(), { atomic: true }), 'Names of objects. An empty list matches all objects.'),
    ...inlined(2, 'admissionregistration.v1.RuleWithOperations', rule),
  },
);

export const matchResources = apiType(
  'admissionregistration.v1.MatchResources',
  { description: 'Selects requests by operation, resource, namespace and labels.', atomic: true },
  {
    namespaceSelector: pointer(
      1,
      overrideOptions(labelSelector, { default: {} }),
      'Selects the namespaces of the objects.',
    ),
    objectSelector: pointer(2, overrideOptions(labelSelector, { default: {} }), 'Selects objects by their labels.'),
    resourceRules: optional(
      3,
      list(namedRuleWithOperations, { atomic: true }),
      'Operations and resources that are matched.',
    ),
    excludeResourceRules: optional(
      4,
      list(namedRuleWithOperations, { atomic: true }),
      'Operations and resources that are not matched.',
    ),
    matchPolicy: pointer(
      7,
      oneOf(['Equivalent', 'Exact'], { default: 'Equivalent' }),
      'Whether rules also match requests to equivalent versions of a resource: Exact or Equivalent.',
    ),
  },
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
