/** The schema of a Job. */
import { probedCondition } from '#engine/registry/kinds/shared/condition.ts';
import { labelSelector } from '#engine/registry/kinds/shared/label-selector.ts';
import { podTemplateSpec } from '#engine/registry/kinds/shared/pod-spec.ts';
import { bool, type Infer, int32, int64, list, overrideOptions, obj, oneOf, str, time } from '#kube/schema-dsl.ts';

const podFailurePolicyOnExitCodesRequirement = obj(
  {
    containerName: str(),
    operator: oneOf(['In', 'NotIn']),
    values: list(int32(), { set: true }),
  },
  { required: ['operator', 'values'] },
);

const podFailurePolicyOnPodConditionsPattern = obj(
  {
    status: str({ default: 'True' }),
    type: str(),
  },
  { required: ['type', 'status'] },
);

const podFailurePolicyRule = obj(
  {
    action: oneOf(['Count', 'FailIndex', 'FailJob', 'Ignore']),
    onExitCodes: podFailurePolicyOnExitCodesRequirement,
    onPodConditions: list(podFailurePolicyOnPodConditionsPattern, { atomic: true }),
  },
  { required: ['action'] },
);

const podFailurePolicy = obj(
  {
    rules: list(podFailurePolicyRule, { atomic: true }),
  },
  { required: ['rules'] },
);

const successPolicyRule = obj({
  succeededCount: int32(),
  succeededIndexes: str(),
});

const successPolicy = obj(
  {
    rules: list(successPolicyRule, { atomic: true }),
  },
  { required: ['rules'] },
);

export const jobSpec = obj(
  {
    activeDeadlineSeconds: int64(),
    backoffLimit: int32(),
    backoffLimitPerIndex: int32(),
    completionMode: oneOf(['NonIndexed', 'Indexed'], { default: 'NonIndexed' }),
    completions: int32(),
    managedBy: str(),
    manualSelector: bool({ default: false }),
    maxFailedIndexes: int32(),
    parallelism: int32(),
    podFailurePolicy,
    podReplacementPolicy: oneOf(['Failed', 'TerminatingOrFailed']),
    selector: labelSelector,
    successPolicy,
    suspend: bool({ default: false }),
    template: overrideOptions(podTemplateSpec, { default: {} }),
    ttlSecondsAfterFinished: int32(),
  },
  { required: ['template'] },
);

const uncountedTerminatedPods = obj({
  failed: list(str(), { set: true }),
  succeeded: list(str(), { set: true }),
});

export const jobStatus = obj({
  active: int32(),
  completedIndexes: str(),
  completionTime: time(),
  conditions: list(probedCondition, { atomic: true, mergeKey: 'type', mapKeys: [] }),
  failed: int32(),
  failedIndexes: str(),
  ready: int32(),
  startTime: time(),
  succeeded: int32(),
  terminating: int32(),
  uncountedTerminatedPods,
});

export type JobSpec = Infer<typeof jobSpec>;
export type JobStatus = Infer<typeof jobStatus>;
