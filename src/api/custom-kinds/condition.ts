import { int64, obj, oneOf, str, time } from '#kube/schema-dsl.ts';

export const conditionSchema = obj(
  {
    type: str(),
    status: oneOf(['True', 'False', 'Unknown']),
    reason: str(),
    message: str(),
    lastTransitionTime: time({ nullable: true }),
    lastProbeTime: time({ nullable: true }),
    observedGeneration: int64(),
  },
  { required: ['type', 'status'] },
);
