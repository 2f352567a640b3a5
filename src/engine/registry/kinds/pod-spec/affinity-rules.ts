/** Validates node and pod affinity. */
import { checkLabelKey, checkName } from '#engine/registry/kinds/shared/formats.ts';
import { checkLabelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { checkNodeSelectorTerm, checkNodeSelectorTerms } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import type { podSpecAffinitySchema } from '#engine/registry/kinds/pod-spec/scheduling.ts';
import { type FieldError, invalidValue, requiredValue } from '#kube/field-error.ts';
import type { Infer } from '#kube/schema-dsl.ts';

type Affinity = Infer<typeof podSpecAffinitySchema>;
type PodAffinity = NonNullable<Affinity['podAffinity']>;
type PodTerm = NonNullable<PodAffinity['requiredDuringSchedulingIgnoredDuringExecution']>[number];

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

export function checkAffinity(
  field: string,
  { nodeAffinity = {}, podAffinity, podAntiAffinity }: Affinity,
): FieldError[] {
  const { [REQUIRED]: required, [PREFERRED]: preferred = [] } = nodeAffinity;
  const at = `${field}.nodeAffinity`;
  return [
    ...(required === undefined ? [] : checkNodeSelectorTerms(`${at}.${REQUIRED}`, required.nodeSelectorTerms)),
    ...preferred.flatMap(({ weight, preference }, i) => [
      ...checkWeight(`${at}.${PREFERRED}[${i}].weight`, weight),
      ...checkNodeSelectorTerm(`${at}.${PREFERRED}[${i}].preference`, preference),
    ]),
    ...checkPodAffinity(`${field}.podAffinity`, podAffinity),
    ...checkPodAffinity(`${field}.podAntiAffinity`, podAntiAffinity),
  ];
}

function checkPodAffinity(field: string, affinityOfPods: PodAffinity = {}): FieldError[] {
  const { [REQUIRED]: required = [], [PREFERRED]: preferred = [] } = affinityOfPods;
  return [
    ...required.flatMap((term, i) => checkPodTerm(`${field}.${REQUIRED}[${i}]`, term)),
    ...preferred.flatMap(({ weight, podAffinityTerm }, i) => [
      ...checkWeight(`${field}.${PREFERRED}[${i}].weight`, weight),
      ...checkPodTerm(`${field}.${PREFERRED}[${i}].podAffinityTerm`, podAffinityTerm),
    ]),
  ];
}

function checkPodTerm(field: string, term: PodTerm): FieldError[] {
  const { labelSelector, namespaceSelector, namespaces = [], topologyKey } = term;
  return [
    ...checkLabelSelector(`${field}.labelSelector`, labelSelector),
    ...checkLabelSelector(`${field}.namespaceSelector`, namespaceSelector),
    ...namespaces.flatMap((name) => checkName(`${field}.namespace`, name, 'label')),
    ...(topologyKey === ''
      ? [requiredValue(`${field}.topologyKey`, 'can not be empty')]
      : checkLabelKey(`${field}.topologyKey`, topologyKey)),
  ];
}

function checkWeight(field: string, weight: number): FieldError[] {
  return weight >= 1 && weight <= 100 ? [] : [invalidValue(field, weight, 'must be in the range 1-100')];
}
