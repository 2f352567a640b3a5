/** ResourceQuota: limits the total resource usage of a namespace. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { canonicalAmounts, checkAmount, quantityText } from '#engine/registry/kinds/shared/quantities.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { isRecord } from '#kube/meta.ts';
import { qualifiedNameErrors } from '#kube/names.ts';
import { type Infer, list, map, overrideOptions, obj, quantity, str } from '#kube/schema-dsl.ts';

const scopedResourceSelectorRequirement = obj(
  {
    operator: str(),
    scopeName: str(),
    values: list(str(), { atomic: true }),
  },
  { required: ['scopeName', 'operator'] },
);

const scopeSelector = obj(
  {
    matchExpressions: list(scopedResourceSelectorRequirement, { atomic: true }),
  },
  { atomic: true },
);

const resourceQuotaSpec = obj({
  hard: map(quantity()),
  scopeSelector,
  scopes: list(str(), { atomic: true }),
});

const resourceQuotaStatus = obj({
  hard: map(quantity()),
  used: map(quantity()),
});

const resourceQuota = obj({
  spec: overrideOptions(resourceQuotaSpec, { default: {} }),
  status: overrideOptions(resourceQuotaStatus, { default: {} }),
});

type QuotaStatus = Infer<typeof resourceQuotaStatus>;

const STANDARD = new Set(
  [
    'cpu memory ephemeral-storage requests.cpu requests.memory requests.storage requests.ephemeral-storage',
    'limits.cpu limits.memory limits.ephemeral-storage pods resourcequotas services services.nodeports',
    'services.loadbalancers replicationcontrollers secrets configmaps persistentvolumeclaims',
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
  validate: ({ spec }) =>
    Object.entries(spec?.hard ?? {}).flatMap(([name, amount]) => [
      ...checkResourceName(`spec.hard[${name}]`, name),
      ...checkAmount(`spec.hard[${name}]`, amount),
    ]),
});

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
