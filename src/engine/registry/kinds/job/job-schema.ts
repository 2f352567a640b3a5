/** The schema of a Job. */
import { apiType, optional, pointer, required } from '#engine/registry/kinds/api-type.ts';
import { probedCondition } from '#engine/registry/kinds/meta/condition.ts';
import { labelSelector } from '#engine/registry/kinds/meta/label-selector.ts';
import { podTemplateSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import { bool, type Infer, int32, int64, list, overrideOptions, oneOf, str, time } from '#kube/schema-dsl.ts';

const podFailurePolicyOnExitCodesRequirement = apiType(
  'batch.v1.PodFailurePolicyOnExitCodesRequirement',
  'A requirement on the exit codes of containers.',
  {
    containerName: pointer(1, str(), 'Name of the container to check. Unset means all containers.'),
    operator: required(2, oneOf(['In', 'NotIn']), 'Relation of the exit code to the values: In or NotIn.'),
    values: required(3, list(int32(), { set: true }), 'Exit codes to compare with.'),
  },
);

const podFailurePolicyOnPodConditionsPattern = apiType(
  'batch.v1.PodFailurePolicyOnPodConditionsPattern',
  'A requirement on a condition of a pod.',
  {
    type: required(1, str(), 'Required type of the condition.'),
    status: required(2, str({ default: 'True' }), 'Required status of the condition.'),
  },
);

const podFailurePolicyRule = apiType(
  'batch.v1.PodFailurePolicyRule',
  'How a failed pod is handled if a requirement is met.',
  {
    action: required(
      1,
      oneOf(['Count', 'FailIndex', 'FailJob', 'Ignore']),
      'Action to take: FailJob, FailIndex, Ignore or Count.',
    ),
    onExitCodes: pointer(2, podFailurePolicyOnExitCodesRequirement, 'Requirement on the exit codes of containers.'),
    onPodConditions: optional(
      3,
      list(podFailurePolicyOnPodConditionsPattern, { atomic: true }),
      'Requirement on the conditions of the pod.',
    ),
  },
);

const podFailurePolicy = apiType('batch.v1.PodFailurePolicy', 'How failed pods of a job are handled.', {
  rules: required(
    1,
    list(podFailurePolicyRule, { atomic: true }),
    'Rules in order. The first rule that matches applies.',
  ),
});

const successPolicyRule = apiType('batch.v1.SuccessPolicyRule', 'Indexes that must succeed for a job to succeed.', {
  succeededIndexes: pointer(1, str(), 'Indexes that must succeed, such as 1,3-5.'),
  succeededCount: pointer(2, int32(), 'Minimum number of indexes that must succeed.'),
});

const successPolicy = apiType('batch.v1.SuccessPolicy', 'When a job counts as succeeded.', {
  rules: required(
    1,
    list(successPolicyRule, { atomic: true }),
    'Rules, any of which is enough for the job to succeed.',
  ),
});

export const jobSpec = apiType('batch.v1.JobSpec', 'Desired behavior of a job.', {
  parallelism: pointer(1, int32(), 'Maximum number of pods to run at a time.'),
  completions: pointer(2, int32(), 'Number of pods that must complete successfully.'),
  activeDeadlineSeconds: pointer(3, int64(), 'Seconds after its start when the job is terminated.'),
  podFailurePolicy: pointer(11, podFailurePolicy, 'How failed pods are handled.'),
  successPolicy: pointer(16, successPolicy, 'When the job counts as succeeded.'),
  backoffLimit: pointer(7, int32(), 'Number of retries before the job is marked as failed.'),
  backoffLimitPerIndex: pointer(12, int32(), 'Number of retries within an index before the index is marked as failed.'),
  maxFailedIndexes: pointer(13, int32(), 'Number of failed indexes before the job is marked as failed.'),
  selector: pointer(4, labelSelector, 'Selects the pods of the job. Normally set by the system.'),
  manualSelector: pointer(5, bool({ default: false }), 'Whether the user sets the pod labels and the selector.'),
  template: required(6, overrideOptions(podTemplateSpec, { default: {} }), 'Template of the pods to create.'),
  ttlSecondsAfterFinished: pointer(8, int32(), 'Seconds after it finished when the job is deleted.'),
  completionMode: pointer(
    9,
    oneOf(['NonIndexed', 'Indexed'], { default: 'NonIndexed' }),
    'How pod completions are tracked: NonIndexed or Indexed.',
  ),
  suspend: pointer(10, bool({ default: false }), 'Whether the job is suspended. A suspended job runs no pods.'),
  podReplacementPolicy: pointer(
    14,
    oneOf(['Failed', 'TerminatingOrFailed']),
    'When pods are replaced: TerminatingOrFailed or Failed.',
  ),
  managedBy: pointer(15, str(), 'Name of the controller that manages the job.'),
});

const uncountedTerminatedPods = apiType(
  'batch.v1.UncountedTerminatedPods',
  'UIDs of terminated pods that are not counted yet.',
  {
    succeeded: optional(1, list(str(), { set: true }), 'UIDs of succeeded pods.'),
    failed: optional(2, list(str(), { set: true }), 'UIDs of failed pods.'),
  },
);

const jobCondition = probedCondition('batch.v1.JobCondition', 'A condition of a job.');

export const jobStatus = apiType('batch.v1.JobStatus', 'The current status of a job.', {
  conditions: optional(
    1,
    list(jobCondition, { atomic: true, mergeKey: 'type', mapKeys: [] }),
    'Latest observations of the state of the job.',
  ),
  startTime: pointer(2, time(), 'Time when the controller started the job.'),
  completionTime: pointer(3, time(), 'Time when the job completed successfully.'),
  active: optional(4, int32(), 'Number of pods that are pending or running and not terminating.'),
  succeeded: optional(5, int32(), 'Number of pods that succeeded.'),
  failed: optional(6, int32(), 'Number of pods that failed.'),
  terminating: pointer(11, int32(), 'Number of pods that are terminating.'),
  completedIndexes: optional(7, str(), 'Completed indexes, such as 1,3-5.'),
  failedIndexes: pointer(10, str(), 'Failed indexes, such as 1,3-5.'),
  uncountedTerminatedPods: pointer(8, uncountedTerminatedPods, 'Terminated pods that are not counted yet.'),
  ready: pointer(9, int32(), 'Number of active pods that are ready.'),
});

export type JobSpec = Infer<typeof jobSpec>;
export type JobStatus = Infer<typeof jobStatus>;
