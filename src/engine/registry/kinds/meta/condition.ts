/** The types of conditions: metav1.Condition of newer kinds, and the fields that the conditions of older kinds share. */
import { apiType, optional, required } from '#engine/registry/kinds/api-type.ts';
import { int64, oneOf, str, time } from '#kube/schema-dsl.ts';

const TYPE = 'Type of the condition.';
const STATUS = 'Status of the condition: True, False or Unknown.';
const LAST_TRANSITION_TIME = 'Last time the status of the condition changed.';
const REASON = 'Brief CamelCase reason for the last transition.';
const MESSAGE = 'Human-readable message about the last transition.';

export const metaConditionSchema = apiType('meta.v1.Condition', 'One aspect of the current state of an object.', {
  type: required(1, str(), TYPE),
  status: required(2, oneOf(['False', 'True', 'Unknown']), STATUS),
  observedGeneration: optional(3, int64(), 'Generation of the object that the condition describes.'),
  lastTransitionTime: required(4, time(), LAST_TRANSITION_TIME),
  reason: required(5, str(), REASON),
  message: required(6, str(), MESSAGE),
});

/** The first fields of the conditions of older kinds. */
export const conditionStatus = { type: required(1, str(), TYPE), status: required(2, str(), STATUS) };

/** Returns the last fields of the conditions of older kinds. Their numbers follow each other. */
export const conditionTransition = (first: number) => ({
  lastTransitionTime: optional(first, time(), LAST_TRANSITION_TIME),
  reason: optional(first + 1, str(), REASON),
  message: optional(first + 2, str(), MESSAGE),
});

/** Returns the type of conditions that record the last probe in addition to the last transition. */
export const probedCondition = (name: string, description: string, typeDescription = TYPE) =>
  apiType(name, description, {
    ...conditionStatus,
    type: required(1, str(), typeDescription),
    lastProbeTime: optional(3, time({ nullable: true }), 'Last time the condition was checked.'),
    ...conditionTransition(4),
  });
