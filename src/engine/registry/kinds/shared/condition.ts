/** The condition that newer kinds share (metav1.Condition). */
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
