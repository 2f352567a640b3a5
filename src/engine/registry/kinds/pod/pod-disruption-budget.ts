/** PodDisruptionBudget: limits the evictions of a set of pods. */
import { apiType, optional, pointer } from '#engine/registry/kinds/api-type.ts';
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { metaConditionSchema } from '#engine/registry/kinds/meta/condition.ts';
import { checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { int32, int64, intOrString, list, map, overrideOptions, oneOf, time } from '#kube/schema-dsl.ts';

const podDisruptionBudgetSpec = apiType(
  'policy.v1.PodDisruptionBudgetSpec',
  'Desired behavior of a PodDisruptionBudget.',
  {
    minAvailable: pointer(1, intOrString(), 'Number or percentage of pods that must be available after an eviction.'),
    // A patch replaces the selector as a whole: a mix of two selectors would protect unintended pods.
    selector: pointer(2, { ...labelSelector, 'x-kubernetes-patch-strategy': 'replace' }, 'Selects the pods.'),
    maxUnavailable: pointer(
      3,
      intOrString(),
      'Number or percentage of pods that may be unavailable after an eviction.',
    ),
    unhealthyPodEvictionPolicy: pointer(
      4,
      oneOf(['AlwaysAllow', 'IfHealthyBudget']),
      'When unhealthy pods may be evicted: IfHealthyBudget or AlwaysAllow.',
    ),
  },
);

const podDisruptionBudgetStatus = apiType(
  'policy.v1.PodDisruptionBudgetStatus',
  'The most recently observed status of a PodDisruptionBudget.',
  {
    observedGeneration: optional(1, int64(), 'Generation of the budget that the status describes.'),
    disruptedPods: optional(2, map(time()), 'Pods whose eviction was accepted and that are not deleted yet.'),
    disruptionsAllowed: optional(3, int32({ default: 0 }), 'Number of disruptions that are currently allowed.', {
      omitEmpty: false,
    }),
    currentHealthy: optional(4, int32({ default: 0 }), 'Current number of healthy pods.', { omitEmpty: false }),
    desiredHealthy: optional(5, int32({ default: 0 }), 'Minimum number of healthy pods.', { omitEmpty: false }),
    expectedPods: optional(6, int32({ default: 0 }), 'Total number of pods that the budget counts.', {
      omitEmpty: false,
    }),
    conditions: optional(
      7,
      list(metaConditionSchema, { mergeKey: 'type' }),
      'Latest observations of the state of the budget.',
    ),
  },
);

const podDisruptionBudget = apiType(
  'policy.v1.PodDisruptionBudget',
  'The maximum disruption that evictions may cause to a collection of pods.',
  {
    spec: optional(2, overrideOptions(podDisruptionBudgetSpec, { default: {} }), 'Desired behavior of the budget.'),
    status: optional(
      3,
      overrideOptions(podDisruptionBudgetStatus, { default: {} }),
      'Most recently observed status of the budget. Populated by the system. Read-only.',
    ),
  },
);

export const podDisruptionBudgets = defineKind({
  group: 'policy',
  kind: 'PodDisruptionBudget',
  plural: 'poddisruptionbudgets',
  namespaced: true,
  needsRevision: true,
  shortNames: ['pdb'],
  schema: podDisruptionBudget,
  columns: [
    { name: 'Min Available', value: ({ spec }) => String(spec?.minAvailable ?? 'N/A') },
    { name: 'Max Unavailable', value: ({ spec }) => String(spec?.maxUnavailable ?? 'N/A') },
    { name: 'Allowed Disruptions', type: 'integer', value: ({ status }) => status?.disruptionsAllowed ?? 0 },
    age,
  ],
  status: true,
  generation: true,
  validate: ({ spec = {} }) => {
    const { minAvailable, maxUnavailable, selector } = spec;
    const both = minAvailable !== undefined && maxUnavailable !== undefined;
    return [
      ...(both ? [invalidValue('spec', spec, 'minAvailable and maxUnavailable cannot be both set')] : []),
      ...checkCountOrPercent('spec.minAvailable', minAvailable),
      ...checkCountOrPercent('spec.maxUnavailable', maxUnavailable),
      ...checkLabelSelector('spec.selector', selector),
    ];
  },
});

const PERCENT_TEXT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

function checkCountOrPercent(field: string, value: number | string | undefined): FieldError[] {
  if (value === undefined) return [];
  if (typeof value === 'number') return checkNotNegative(field, value);
  if (!/^[0-9]+%$/.test(value)) return [invalidValue(field, value, PERCENT_TEXT)];
  return Number.parseInt(value, 10) > 100 ? [invalidValue(field, value, 'must not be greater than 100%')] : [];
}
