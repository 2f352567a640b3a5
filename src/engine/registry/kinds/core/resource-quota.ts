/** ResourceQuota: limits the total resource usage of a namespace. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { quotaScopeErrors } from '#engine/registry/kinds/core/quota-scope-rules.ts';
import { sameValue } from '#engine/registry/kinds/shared/reading.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { canonicalAmounts, checkAmount, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { qualifiedNameErrors } from '#kube/names.ts';
import { findQuantityError, parseQuantity } from '#kube/quantity.ts';
import { type Infer, list, map, overrideOptions, quantity, str } from '#kube/schema-dsl.ts';

const scopedResourceSelectorRequirement = apiType(
  'core.v1.ScopedResourceSelectorRequirement',
  'A requirement on a scope.',
  {
    scopeName: required(1, str(), 'Name of the scope.'),
    operator: required(2, str(), 'Relation of the scope to the values: In, NotIn, Exists or DoesNotExist.'),
    values: optional(3, list(str(), { atomic: true }), 'Values to compare with.'),
  },
);

const scopeSelector = apiType(
  'core.v1.ScopeSelector',
  { description: 'Selects objects that match all of its requirements.', atomic: true },
  {
    matchExpressions: optional(1, list(scopedResourceSelectorRequirement, { atomic: true }), 'Requirements on scopes.'),
  },
);

const resourceQuotaSpec = apiType('core.v1.ResourceQuotaSpec', 'Desired limits of a quota.', {
  hard: optional(1, map(quantity()), 'Hard limit of each resource.'),
  scopes: optional(2, list(str(), { atomic: true }), 'Scopes that an object must match to count.'),
  scopeSelector: pointer(3, scopeSelector, 'Selects the objects that count, by scope.'),
});

const resourceQuotaStatus = apiType('core.v1.ResourceQuotaStatus', 'Enforced limits and current usage of a quota.', {
  hard: optional(1, map(quantity()), 'Enforced hard limits.'),
  used: optional(2, map(quantity()), 'Current usage in the namespace.'),
});

const resourceQuota = apiType('core.v1.ResourceQuota', 'Aggregate quota restrictions of a namespace.', {
  spec: optional(2, overrideOptions(resourceQuotaSpec, { default: {} }), 'Desired quota.'),
  status: optional(
    3,
    overrideOptions(resourceQuotaStatus, { default: {} }),
    'Enforced quota and current usage. Populated by the system. Read-only.',
  ),
});

type QuotaStatus = Infer<typeof resourceQuotaStatus>;

const STANDARD = new Set(
  [
    'cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage',
    'limits.cpu limits.memory limits.ephemeral-storage pods resourcequotas services services.nodeports',
    'services.loadbalancers replicationcontrollers secrets configmaps persistentvolumeclaims',
  ].flatMap((line) => line.split(' ')),
);

const INTEGERS = new Set(
  [
    'pods resourcequotas services services.nodeports services.loadbalancers replicationcontrollers secrets',
    'configmaps persistentvolumeclaims',
  ].flatMap((line) => line.split(' ')),
);

export const resourceQuotas = defineKind({
  kind: 'ResourceQuota',
  plural: 'resourcequotas',
  namespaced: true,
  shortNames: ['quota'],
  schema: resourceQuota,
  columns: [
    age,
    { name: 'Request', value: ({ status }) => usage(status, (name) => !isLimit(name)) },
    { name: 'Limit', value: ({ status }) => usage(status, isLimit) },
  ],
  status: true,
  defaults({ spec, status }) {
    if (isRecord(spec)) canonicalAmounts(spec.hard);
    if (!isRecord(status)) return;
    canonicalAmounts(status.hard);
    canonicalAmounts(status.used);
  },
  validate: ({ spec, status }) => [
    ...hardErrors('spec.hard', spec?.hard),
    ...quotaScopeErrors(spec ?? {}),
    ...hardErrors('status.hard', status?.hard),
    ...hardErrors('status.used', status?.used),
  ],
  validateUpdate({ spec }, { spec: before }) {
    const scopes = (of: typeof spec) => [...new Set(of?.scopes ?? [])].sort();
    if (sameValue(scopes(spec), scopes(before))) return [];
    return [invalidValue('spec.scopes', spec?.scopes, 'field is immutable')];
  },
});

function hardErrors(field: string, amounts: Readonly<Record<string, string | number>> | undefined): FieldError[] {
  return Object.entries(amounts ?? {}).flatMap(([name, amount]) => [
    ...checkResourceName(`${field}[${name}]`, name),
    ...checkAmount(`${field}[${name}]`, amount),
    ...integerErrors(`${field}[${name}]`, name, amount),
  ]);
}

/** Objects are counted in whole numbers. */
function integerErrors(field: string, name: string, amount: string | number): FieldError[] {
  if (!name.startsWith('count/') && !INTEGERS.has(name)) return [];
  if (findQuantityError(amount) !== undefined) return [];
  const { nanos } = parseQuantity(quantityText(amount));
  return nanos % 10n ** 9n === 0n ? [] : [invalidValue(field, quantityText(amount), 'must be an integer')];
}

function isLimit(name: string): boolean {
  return name.startsWith('limits.');
}

function usage(status: QuotaStatus | undefined, wanted: (name: string) => boolean): string {
  return Object.entries(status?.hard ?? {})
    .filter(([name]) => wanted(name))
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, hard]) => `${name}: ${quantityText(status?.used?.[name] ?? '0')}/${quantityText(hard)}`)
    .join(', ');
}

function checkResourceName(field: string, name: string): FieldError[] {
  const texts = qualifiedNameErrors(name);
  if (texts.length > 0) return texts.map((text) => invalidValue(field, name, text));
  if (name.includes('/') || STANDARD.has(name) || /^(requests\.)?hugepages-/.test(name)) return [];
  return [
    invalidValue(field, name, 'must be a standard resource type or fully qualified'),
    invalidValue(field, name, 'must be a standard resource for quota'),
  ];
}
