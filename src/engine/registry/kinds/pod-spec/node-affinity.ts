/** The schemas of node selectors of affinity and volumes. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { int32, list, str } from '#kube/schema-dsl.ts';

const nodeSelectorRequirement = apiType(
  'core.v1.NodeSelectorRequirement',
  'A requirement on a label or field of a node.',
  {
    key: required(1, str(), 'Key of the label or field.'),
    operator: required(2, str(), 'Relation of the key to the values: In, NotIn, Exists, DoesNotExist, Gt or Lt.'),
    values: optional(3, list(str(), { atomic: true }), 'Values to compare with.'),
  },
);

export const nodeSelectorTerm = apiType(
  'core.v1.NodeSelectorTerm',
  { description: 'Selects nodes that match all of its requirements.', atomic: true },
  {
    matchExpressions: optional(1, list(nodeSelectorRequirement, { atomic: true }), 'Requirements on labels.'),
    matchFields: optional(2, list(nodeSelectorRequirement, { atomic: true }), 'Requirements on fields.'),
  },
);

export const nodeSelector = apiType(
  'core.v1.NodeSelector',
  { description: 'Selects nodes that match any of its terms.', atomic: true },
  {
    nodeSelectorTerms: required(1, list(nodeSelectorTerm, { atomic: true }), 'Terms, of which any must match.'),
  },
);

export const preferredSchedulingTerm = apiType('core.v1.PreferredSchedulingTerm', 'A weighted preference for nodes.', {
  weight: required(1, int32(), 'Weight of the preference, from 1 to 100.'),
  preference: required(2, nodeSelectorTerm, 'Node selector term of the preference.'),
});

export const nodeAffinity = apiType('core.v1.NodeAffinity', 'Scheduling constraints on the node of a pod.', {
  requiredDuringSchedulingIgnoredDuringExecution: pointer(1, nodeSelector, 'Requirements that the node must meet.'),
  preferredDuringSchedulingIgnoredDuringExecution: optional(
    2,
    list(preferredSchedulingTerm, { atomic: true }),
    'Weighted preferences. The scheduler prefers nodes with the highest sum of weights.',
  ),
});

export const volumeNodeAffinity = apiType(
  'core.v1.VolumeNodeAffinity',
  'Constraints on the nodes that can access a volume.',
  {
    required: pointer(1, nodeSelector, 'Requirements that a node must meet.'),
  },
);

export const topologySelectorLabelRequirement = apiType(
  'core.v1.TopologySelectorLabelRequirement',
  'A requirement on a label of a node.',
  {
    key: required(1, str(), 'Key of the label.'),
    values: required(2, list(str(), { atomic: true }), 'Values, one of which the label must have.'),
  },
);

export const topologySelectorTerm = apiType(
  'core.v1.TopologySelectorTerm',
  { description: 'Selects topologies that match all of its requirements.', atomic: true },
  {
    matchLabelExpressions: optional(
      1,
      list(topologySelectorLabelRequirement, { atomic: true }),
      'Requirements on labels.',
    ),
  },
);
