/** The schemas of conditions: metav1.Condition of newer kinds, and the variants of older kinds. */
import { int64, obj, oneOf, str, time } from '#kube/schema-dsl.ts';

export const coreConditionSchema = obj(
  {
    lastTransitionTime: time(),
    message: str(),
    observedGeneration: int64(),
    reason: str(),
    status: oneOf(['False', 'True', 'Unknown']),
    type: str(),
  },
  { required: ['type', 'status', 'lastTransitionTime', 'reason', 'message'] },
);

/** The conditions of older kinds. */
export const plainCondition = obj(
  {
    lastTransitionTime: time(),
    message: str(),
    reason: str(),
    status: str(),
    type: str(),
  },
  { required: ['type', 'status'] },
);

/** Conditions that record the last probe in addition to the last transition. */
export const probedCondition = obj(
  { ...plainCondition.properties, lastProbeTime: time({ nullable: true }) },
  { required: ['type', 'status'] },
);
