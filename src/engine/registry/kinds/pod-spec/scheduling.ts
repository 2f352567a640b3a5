/** The schemas of scheduling constraints: affinity, taints and tolerations, topology spread. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { nodeAffinity } from '#engine/registry/kinds/pod-spec/node-affinity.ts';
import { int32, int64, list, oneOf, str, time } from '#kube/schema-dsl.ts';

export const podAffinityTerm = apiType(
  'core.v1.PodAffinityTerm',
  'A set of pods and the topology domain within which they count as near.',
  {
    labelSelector: pointer(1, labelSelector, 'Selects the pods.'),
    namespaces: optional(2, list(str(), { atomic: true }), 'Names of the namespaces of the pods.'),
    topologyKey: required(
      3,
      str(),
      'Node label that defines the topology domain: nodes with equal values are in the same domain.',
    ),
    namespaceSelector: pointer(4, labelSelector, 'Selects the namespaces of the pods.'),
    matchLabelKeys: optional(
      5,
      list(str(), { atomic: true }),
      'Label keys whose values must equal those of the incoming pod.',
    ),
    mismatchLabelKeys: optional(
      6,
      list(str(), { atomic: true }),
      'Label keys whose values must differ from those of the incoming pod.',
    ),
  },
);

const weightedPodAffinityTerm = apiType(
  'core.v1.WeightedPodAffinityTerm',
  'A weighted preference for pods to be near.',
  {
    weight: required(1, int32(), 'Weight of the preference, from 1 to 100.'),
    podAffinityTerm: required(2, podAffinityTerm, 'Pod affinity term of the preference.'),
  },
);

/** The fields of pod affinity and anti-affinity. */
const affinity = {
  requiredDuringSchedulingIgnoredDuringExecution: optional(
    1,
    list(podAffinityTerm, { atomic: true }),
    'Requirements that must all be met.',
  ),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    list(weightedPodAffinityTerm, { atomic: true }),
    'Weighted preferences. The scheduler prefers nodes with the highest sum of weights.',
  ),
};

export const podAffinity = apiType('core.v1.PodAffinity', 'Pods that a pod should be placed near.', affinity);
const podAntiAffinity = apiType('core.v1.PodAntiAffinity', 'Pods that a pod should not be placed near.', affinity);

export const podSpecAffinitySchema = apiType('core.v1.Affinity', 'Scheduling constraints of a pod.', {
  nodeAffinity: pointer(1, nodeAffinity, 'Constraints on the node.'),
  podAffinity: pointer(2, podAffinity, 'Pods to be placed near.'),
  podAntiAffinity: pointer(3, podAntiAffinity, 'Pods to stay away from.'),
});

/** In the order of error messages, which is not alphabetical here. */
const taintEffect = oneOf(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

export const taint = apiType('core.v1.Taint', 'Repels pods that do not tolerate the taint.', {
  key: required(1, str(), 'Key of the taint.'),
  value: optional(2, str(), 'Value of the taint.'),
  effect: required(
    3,
    taintEffect,
    'Effect on pods that do not tolerate the taint: NoSchedule, PreferNoSchedule or NoExecute.',
  ),
  timeAdded: pointer(4, time(), 'Time when the taint was added.'),
});

export const podTolerationSchema = apiType('core.v1.Toleration', 'A taint that a pod tolerates.', {
  key: optional(1, str(), 'Key of the taint. Empty matches all keys.'),
  operator: optional(2, oneOf(['Equal', 'Exists']), 'Relation of the key to the value: Exists or Equal.'),
  value: optional(3, str(), 'Value of the taint.'),
  effect: optional(
    4,
    taintEffect,
    'Effect of the taint: NoSchedule, PreferNoSchedule or NoExecute. Empty matches all effects.',
  ),
  tolerationSeconds: pointer(5, int64(), 'Seconds for which a NoExecute taint is tolerated. Unset means forever.'),
});

export const topologySpreadConstraint = apiType(
  'core.v1.TopologySpreadConstraint',
  'How matching pods spread across topology domains.',
  {
    maxSkew: required(1, int32(), 'Maximum difference between the numbers of matching pods in two domains.'),
    topologyKey: required(
      2,
      str(),
      'Node label that defines the topology domain: nodes with equal values are in the same domain.',
    ),
    whenUnsatisfiable: required(
      3,
      oneOf(['DoNotSchedule', 'ScheduleAnyway']),
      'What to do if the constraint cannot be satisfied: DoNotSchedule or ScheduleAnyway.',
    ),
    labelSelector: pointer(4, labelSelector, 'Selects the pods to count.'),
    minDomains: pointer(5, int32(), 'Minimum number of eligible domains.'),
    nodeAffinityPolicy: pointer(
      6,
      oneOf(['Honor', 'Ignore']),
      "Whether nodes that do not match the pod's node affinity are left out: Honor or Ignore.",
    ),
    nodeTaintsPolicy: pointer(
      7,
      oneOf(['Honor', 'Ignore']),
      'Whether nodes with taints that the pod does not tolerate are left out: Honor or Ignore.',
    ),
    matchLabelKeys: optional(
      8,
      list(str(), { atomic: true }),
      'Label keys whose values must equal those of the incoming pod.',
    ),
  },
);
