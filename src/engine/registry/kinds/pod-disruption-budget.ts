/** PodDisruptionBudget: limits the evictions of a set of pods. */
import { defineKind } from '#engine/registry/kinds/define-kind.ts';
import { age } from '#engine/registry/kinds/shared/columns.ts';
import { coreConditionSchema } from '#engine/registry/kinds/shared/condition.ts';
import { checkNotNegative } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector, labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { int32, int64, intOrString, list, map, overrideOptions, obj, oneOf, time } from '#kube/schema-dsl.ts';

const podDisruptionBudgetSpec = obj({
  maxUnavailable: intOrString(),
  minAvailable: intOrString(),
  // A patch replaces the selector as a whole: a mix of two selectors would protect unintended pods.
  selector: { ...labelSelector, 'x-kubernetes-patch-strategy': 'replace' },
  unhealthyPodEvictionPolicy: oneOf(['AlwaysAllow', 'IfHealthyBudget']),
});

const podDisruptionBudgetStatus = obj({
  conditions: list(coreConditionSchema, { mergeKey: 'type' }),
  currentHealthy: int32({ default: 0 }),
  desiredHealthy: int32({ default: 0 }),
  disruptedPods: map(time()),
  disruptionsAllowed: int32({ default: 0 }),
  expectedPods: int32({ default: 0 }),
  observedGeneration: int64(),
});

const podDisruptionBudget = obj({
  spec: overrideOptions(podDisruptionBudgetSpec, { default: {} }),
  status: overrideOptions(podDisruptionBudgetStatus, { default: {} }),
});

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
