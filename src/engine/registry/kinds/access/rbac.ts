/** Roles and role bindings. engine/auth evaluates them. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age, createdAt } from '#engine/registry/kinds/shared/columns.ts';
import { checkImmutableValue, checkName, checkRequiredName } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { type FieldError, requiredValue, unsupportedValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { type Infer, list, str } from '#kube/schema-dsl.ts';

const policyRule = apiType('rbac.v1.PolicyRule', 'A set of actions on a set of resources.', {
  verbs: required(1, list(str(), { atomic: true }), 'Verbs. * matches all verbs.'),
  apiGroups: optional(2, list(str(), { atomic: true }), 'API groups of the resources. * matches all groups.'),
  resources: optional(3, list(str(), { atomic: true }), 'Resources. * matches all resources.'),
  resourceNames: optional(4, list(str(), { atomic: true }), 'Names of objects. An empty list matches all objects.'),
  nonResourceURLs: optional(
    5,
    list(str(), { atomic: true }),
    'URL paths that are not resources. * is allowed as the last step of a path.',
  ),
});

const roleRef = apiType(
  'rbac.v1.RoleRef',
  { description: 'A reference to a role.', atomic: true },
  {
    apiGroup: required(1, str({ default: 'rbac.authorization.k8s.io' }), 'API group of the role.'),
    kind: required(2, str({ default: '' }), 'Kind of the role: Role or ClusterRole.'),
    name: required(3, str(), 'Name of the role.'),
  },
);

const subject = apiType(
  'rbac.v1.Subject',
  { description: 'A user, group or service account.', atomic: true },
  {
    kind: required(1, str({ default: '' }), 'Kind of the subject: User, Group or ServiceAccount.'),
    apiGroup: optional(2, str(), 'API group of the subject. Empty for service accounts.'),
    name: required(3, str(), 'Name of the subject.'),
    namespace: optional(4, str(), 'Namespace of the service account. Empty for users and groups.'),
  },
);

const aggregationRule = apiType('rbac.v1.AggregationRule', 'Selects the ClusterRoles whose rules are combined.', {
  clusterRoleSelectors: optional(
    1,
    list(labelSelector, { atomic: true }),
    'Selectors, any of which a ClusterRole must match.',
  ),
});

const GROUP = 'rbac.authorization.k8s.io';

type Rule = Infer<typeof policyRule>;
type Subject = Infer<typeof subject>;
type RoleRef = Infer<typeof roleRef>;

const role = apiType('rbac.v1.Role', 'A set of permissions within one namespace.', {
  rules: optional(2, list(policyRule, { atomic: true }), 'Rules of the role.', { omitEmpty: false }),
});
const clusterRole = apiType(
  'rbac.v1.ClusterRole',
  'A cluster-wide set of permissions, which RoleBindings and ClusterRoleBindings can refer to.',
  {
    rules: optional(2, list(policyRule, { atomic: true }), 'Rules of the role.', { omitEmpty: false }),
    aggregationRule: pointer(3, aggregationRule, 'How the rules are collected from other ClusterRoles.'),
  },
);
const binding = {
  subjects: optional(
    2,
    list(subject, { atomic: true }),
    'Users, groups and service accounts that the role is granted to.',
  ),
  roleRef: required(3, roleRef, 'Role that is granted. Cannot be updated.'),
};
const roleBinding = apiType('rbac.v1.RoleBinding', 'Grants the permissions of a role within one namespace.', binding);
const clusterRoleBinding = apiType(
  'rbac.v1.ClusterRoleBinding',
  'Grants the permissions of a ClusterRole in the whole cluster.',
  binding,
);

type Binding = Infer<typeof roleBinding>;

export const roles = defineKind({
  group: GROUP,
  kind: 'Role',
  plural: 'roles',
  namespaced: true,
  nameRule: 'path-segment',
  schema: role,
  columns: [createdAt],
  validate: ({ rules = [] }) => rules.flatMap((rule, i) => checkRule(`rules[${i}]`, rule, true)),
});

export const clusterRoles = defineKind({
  group: GROUP,
  kind: 'ClusterRole',
  plural: 'clusterroles',
  namespaced: false,
  nameRule: 'path-segment',
  schema: clusterRole,
  columns: [createdAt],
  validate: ({ rules = [], aggregationRule: aggregation }) => [
    ...rules.flatMap((rule, i) => checkRule(`rules[${i}]`, rule, false)),
    ...(aggregation === undefined ? [] : checkAggregation(aggregation.clusterRoleSelectors ?? [])),
  ],
});

const bindingColumns = [
  { name: 'Role', value: ({ roleRef: { kind, name } }: Binding) => `${kind}/${name}` },
  age,
  { name: 'Users', priority: 1, value: (object: Binding) => subjectsOf(object, 'User') },
  { name: 'Groups', priority: 1, value: (object: Binding) => subjectsOf(object, 'Group') },
  { name: 'ServiceAccounts', priority: 1, value: (object: Binding) => subjectsOf(object, 'ServiceAccount') },
];

export const roleBindings = defineKind({
  group: GROUP,
  kind: 'RoleBinding',
  plural: 'rolebindings',
  namespaced: true,
  nameRule: 'path-segment',
  schema: roleBinding,
  columns: bindingColumns,
  defaults: defaultSubjects,
  validate: (object) => checkBinding(object, ['Role', 'ClusterRole'], true),
  validateUpdate: (object, old) => checkSameRole(object.roleRef, old.roleRef),
});

export const clusterRoleBindings = defineKind({
  group: GROUP,
  kind: 'ClusterRoleBinding',
  plural: 'clusterrolebindings',
  namespaced: false,
  nameRule: 'path-segment',
  schema: clusterRoleBinding,
  columns: bindingColumns,
  defaults: defaultSubjects,
  validate: (object) => checkBinding(object, ['ClusterRole'], false),
  validateUpdate: (object, old) => checkSameRole(object.roleRef, old.roleRef),
});

function subjectsOf({ subjects = [] }: Binding, kind: string): string {
  return subjects
    .filter((one) => one.kind === kind)
    .map(({ namespace, name }) => (kind === 'ServiceAccount' ? `${namespace ?? ''}/${name}` : name))
    .join(', ');
}

/** Defaults the API group of users and groups; service accounts are in the core group. */
function defaultSubjects({ subjects }: Binding): void {
  if (!Array.isArray(subjects)) return;
  for (const one of subjects) {
    if (isRecord(one) && (one.kind === 'User' || one.kind === 'Group')) one.apiGroup ??= GROUP;
  }
}

/** roleRef is immutable. Kubernetes prints the value in Go syntax. */
function checkSameRole(ref: RoleRef, old: RoleRef): FieldError[] {
  if (checkImmutableValue('roleRef', ref, old).length === 0) return [];
  const { apiGroup, kind, name } = ref;
  const shown = `rbac.RoleRef{APIGroup:${JSON.stringify(apiGroup)}, Kind:${JSON.stringify(kind)}, Name:${JSON.stringify(name)}}`;
  return [{ reason: 'FieldValueInvalid', field: 'roleRef', message: `Invalid value: ${shown}: cannot change roleRef` }];
}

function checkRule(field: string, rule: Rule, namespaced: boolean): FieldError[] {
  const { verbs, nonResourceURLs = [], apiGroups = [], resources = [], resourceNames = [] } = rule;
  const errors: FieldError[] = [];
  if (verbs.length === 0) errors.push(requiredValue(`${field}.verbs`, 'verbs must contain at least one value'));
  if (nonResourceURLs.length > 0) {
    const shown = `[]string{${nonResourceURLs.map((url) => JSON.stringify(url)).join(', ')}}`;
    const wrong = (text: string) =>
      errors.push({
        reason: 'FieldValueInvalid',
        field: `${field}.nonResourceURLs`,
        message: `Invalid value: ${shown}: ${text}`,
      });
    if (namespaced) wrong('namespaced rules cannot apply to non-resource URLs');
    if (apiGroups.length + resources.length + resourceNames.length > 0) {
      wrong('rules cannot apply to both regular resources and non-resource URLs');
    }
    return errors;
  }
  if (apiGroups.length === 0) {
    errors.push(requiredValue(`${field}.apiGroups`, 'resource rules must supply at least one api group'));
  }
  if (resources.length === 0) {
    errors.push(requiredValue(`${field}.resources`, 'resource rules must supply at least one resource'));
  }
  return errors;
}

function checkAggregation(selectors: readonly Infer<typeof labelSelector>[]): FieldError[] {
  const field = 'aggregationRule.clusterRoleSelectors';
  if (selectors.length === 0) {
    return [requiredValue(field, 'at least one clusterRoleSelector required if aggregationRule is non-nil')];
  }
  return selectors.flatMap((selector, i) => checkLabelSelector(`${field}[${i}]`, selector));
}

function checkBinding({ roleRef: ref, subjects = [] }: Binding, kinds: string[], namespaced: boolean): FieldError[] {
  return [
    ...checkRoleRef(ref, kinds),
    ...subjects.flatMap((one, i) => checkSubject(`subjects[${i}]`, one, namespaced)),
  ];
}

function checkRoleRef({ apiGroup, kind, name }: RoleRef, kinds: string[]): FieldError[] {
  const errors: FieldError[] = [];
  if (apiGroup !== GROUP) errors.push(unsupportedValue('roleRef.apiGroup', apiGroup, [GROUP]));
  if (!kinds.includes(kind)) errors.push(unsupportedValue('roleRef.kind', kind, kinds));
  return [...errors, ...checkRequiredName('roleRef.name', name, 'path-segment')];
}

function checkSubject(field: string, one: Subject, namespaced: boolean): FieldError[] {
  const { kind, name, apiGroup = '', namespace = '' } = one;
  const errors: FieldError[] = name === '' ? [requiredValue(`${field}.name`)] : [];
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') errors.push(...checkName(`${field}.name`, name, 'subdomain'));
      if (apiGroup !== '') errors.push(unsupportedValue(`${field}.apiGroup`, apiGroup, ['']));
      if (!namespaced && namespace === '') errors.push(requiredValue(`${field}.namespace`));
      return errors;
    case 'User':
    case 'Group':
      if (apiGroup !== GROUP) errors.push(unsupportedValue(`${field}.apiGroup`, apiGroup, [GROUP]));
      return errors;
    default:
      return [...errors, unsupportedValue(`${field}.kind`, kind, ['ServiceAccount', 'User', 'Group'])];
  }
}
