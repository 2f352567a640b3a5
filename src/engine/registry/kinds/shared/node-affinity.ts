/** The schemas of node selectors of affinity and volumes. */
import { selectorRequirement } from '#engine/registry/kinds/shared/label-selector.ts';
import { int32, list, obj, str } from '#kube/schema-dsl.ts';

export const nodeSelectorTerm = obj(
  {
    matchExpressions: list(selectorRequirement, { atomic: true }),
    matchFields: list(selectorRequirement, { atomic: true }),
  },
  { atomic: true },
);

export const nodeSelector = obj(
  {
    nodeSelectorTerms: list(nodeSelectorTerm, { atomic: true }),
  },
  { required: ['nodeSelectorTerms'], atomic: true },
);

export const preferredSchedulingTerm = obj(
  {
    preference: nodeSelectorTerm,
    weight: int32(),
  },
  { required: ['weight', 'preference'] },
);

export const nodeAffinity = obj({
  preferredDuringSchedulingIgnoredDuringExecution: list(preferredSchedulingTerm, { atomic: true }),
  requiredDuringSchedulingIgnoredDuringExecution: nodeSelector,
});

export const volumeNodeAffinity = obj({
  required: nodeSelector,
});

export const topologySelectorLabelRequirement = obj(
  {
    key: str(),
    values: list(str(), { atomic: true }),
  },
  { required: ['key', 'values'] },
);

export const topologySelectorTerm = obj(
  {
    matchLabelExpressions: list(topologySelectorLabelRequirement, { atomic: true }),
  },
  { atomic: true },
);
