/** The schemas of scheduling constraints: affinity, taints and tolerations, topology spread. */
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { nodeAffinity } from '#engine/registry/kinds/shared/node-affinity.ts';
import { int32, int64, list, obj, oneOf, str, time } from '#kube/schema-dsl.ts';

export const podAffinityTerm = obj(
  {
    labelSelector,
    matchLabelKeys: list(str(), { atomic: true }),
    mismatchLabelKeys: list(str(), { atomic: true }),
    namespaceSelector: labelSelector,
    namespaces: list(str(), { atomic: true }),
    topologyKey: str(),
  },
  { required: ['topologyKey'] },
);

export const weightedPodAffinityTerm = obj(
  {
    podAffinityTerm,
    weight: int32(),
  },
  { required: ['weight', 'podAffinityTerm'] },
);

/** Pod affinity and anti-affinity. */
export const podAffinity = obj({
  preferredDuringSchedulingIgnoredDuringExecution: list(weightedPodAffinityTerm, { atomic: true }),
  requiredDuringSchedulingIgnoredDuringExecution: list(podAffinityTerm, { atomic: true }),
});

export const podSpecAffinitySchema = obj({
  nodeAffinity,
  podAffinity,
  podAntiAffinity: podAffinity,
});

/** In the order of error messages, which is not alphabetical here. */
const taintEffect = oneOf(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

export const taint = obj(
  {
    effect: taintEffect,
    key: str(),
    timeAdded: time(),
    value: str(),
  },
  { required: ['key', 'effect'] },
);

export const podTolerationSchema = obj({
  effect: taintEffect,
  key: str(),
  operator: oneOf(['Equal', 'Exists']),
  tolerationSeconds: int64(),
  value: str(),
});

export const topologySpreadConstraint = obj(
  {
    labelSelector,
    matchLabelKeys: list(str(), { atomic: true }),
    maxSkew: int32(),
    minDomains: int32(),
    nodeAffinityPolicy: oneOf(['Honor', 'Ignore']),
    nodeTaintsPolicy: oneOf(['Honor', 'Ignore']),
    topologyKey: str(),
    whenUnsatisfiable: oneOf(['DoNotSchedule', 'ScheduleAnyway']),
  },
  { required: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
);
