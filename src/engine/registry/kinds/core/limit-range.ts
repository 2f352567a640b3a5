/** LimitRange: default, minimum and maximum resources of single pods, containers and claims of a namespace. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { LIMIT_LISTS, limitRangeErrors } from '#engine/registry/kinds/core/limit-range-rules.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { createdAt } from '#engine/registry/kinds/shared/columns.ts';
import { canonicalAmounts } from '#engine/registry/kinds/shared/quantities.ts';
import { isRecord } from '#kube/meta.ts';
import { type Infer, list, map, overrideOptions, quantity, str } from '#kube/schema-dsl.ts';

const limitRangeItem = apiType('core.v1.LimitRangeItem', 'The limits of one type of object.', {
  type: required(1, str(), 'Type of object: Container, Pod or PersistentVolumeClaim.'),
  max: optional(2, map(quantity()), 'Maximum of each resource.'),
  min: optional(3, map(quantity()), 'Minimum of each resource.'),
  default: optional(4, map(quantity()), 'Limit of each resource for containers without one.'),
  defaultRequest: optional(5, map(quantity()), 'Request of each resource for containers without one.'),
  maxLimitRequestRatio: optional(6, map(quantity()), 'Maximum of the limit divided by the request.'),
});

const limitRangeSpec = apiType('core.v1.LimitRangeSpec', 'The limits of a namespace, by type of object.', {
  limits: required(1, list(limitRangeItem, { atomic: true }), 'Limits that are enforced.'),
});

const limitRange = apiType('core.v1.LimitRange', 'Resource limits of single objects of a namespace.', {
  spec: optional(2, overrideOptions(limitRangeSpec, { default: {} }), 'Enforced limits.'),
});

export type LimitRangeItem = Infer<typeof limitRangeItem>;

export const limitRanges = defineKind({
  kind: 'LimitRange',
  plural: 'limitranges',
  namespaced: true,
  shortNames: ['limits'],
  schema: limitRange,
  columns: [createdAt],
  defaults({ spec }) {
    if (!isRecord(spec) || !Array.isArray(spec.limits)) return;
    for (const item of spec.limits) if (isRecord(item)) setItemDefaults(item);
  },
  validate: ({ spec }) => limitRangeErrors(spec?.limits ?? []),
});

/** The default limit of a container is its maximum, and its default request is its default limit or its minimum. */
function setItemDefaults(item: Partial<LimitRangeItem>): void {
  for (const name of LIMIT_LISTS) canonicalAmounts(item[name]);
  if (item.type !== 'Container') return;
  const { max, min } = item;
  const limit = { ...amountsOf(max), ...amountsOf(item.default) };
  const request = { ...amountsOf(min), ...limit, ...amountsOf(item.defaultRequest) };
  if (Object.keys(limit).length > 0) item.default = limit;
  if (Object.keys(request).length > 0) item.defaultRequest = request;
}

function amountsOf(amounts: unknown): Record<string, string | number> {
  return isRecord(amounts) ? (amounts as Record<string, string | number>) : {};
}
