/** The conditions that kinds report: those of newer kinds (metav1.Condition) and those that came before them. */
import { int64, obj, oneOf, str, time } from '#kube/schema-dsl.ts';

export const condition = obj(
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

/** What older kinds have. */
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

/** With the moment of the last look, whether anything changed or not. */
export const probedCondition = obj(
  { ...plainCondition.properties, lastProbeTime: time({ nullable: true }) },
  { required: ['type', 'status'] },
);
