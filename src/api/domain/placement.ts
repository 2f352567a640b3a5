/** Schemas of scheduling constraints, as in a Pod. They are copied to the launcher pod; unknown values are refused. */
import { int32, int64, list, map, obj, oneOf, str } from '#kube/schema-dsl.ts';

const nodeRequirement = obj(
  {
    key: str(),
    operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt']),
    values: list(str()),
  },
  { required: ['key', 'operator'] },
);

const nodeTerm = obj({ matchExpressions: list(nodeRequirement), matchFields: list(nodeRequirement) });

const labelSelector = obj({
  matchLabels: map(str()),
  matchExpressions: list(
    obj(
      { key: str(), operator: oneOf(['In', 'NotIn', 'Exists', 'DoesNotExist']), values: list(str()) },
      { required: ['key', 'operator'] },
    ),
  ),
});

const podTerm = obj(
  {
    labelSelector,
    namespaceSelector: labelSelector,
    namespaces: list(str()),
    topologyKey: str({ minLength: 1 }),
    matchLabelKeys: list(str()),
    mismatchLabelKeys: list(str()),
  },
  { required: ['topologyKey'] },
);

const weight = int32({ minimum: 1, maximum: 100 });

const podRules = obj({
  requiredDuringSchedulingIgnoredDuringExecution: list(podTerm),
  preferredDuringSchedulingIgnoredDuringExecution: list(
    obj({ weight, podAffinityTerm: podTerm }, { required: ['weight', 'podAffinityTerm'] }),
  ),
});

export const affinitySchema = obj(
  {
    nodeAffinity: obj({
      requiredDuringSchedulingIgnoredDuringExecution: obj(
        { nodeSelectorTerms: list(nodeTerm, { minItems: 1 }) },
        { required: ['nodeSelectorTerms'] },
      ),
      preferredDuringSchedulingIgnoredDuringExecution: list(
        obj({ weight, preference: nodeTerm }, { required: ['weight', 'preference'] }),
      ),
    }),
    podAffinity: podRules,
    podAntiAffinity: podRules,
  },
  { description: 'Affinity rules, as in a Pod.' },
);

export const tolerationSchema = obj({
  key: str(),
  operator: oneOf(['Exists', 'Equal']),
  value: str(),
  effect: oneOf(['NoSchedule', 'PreferNoSchedule', 'NoExecute']),
  tolerationSeconds: int64(),
});
