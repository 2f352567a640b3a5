/** Jobs with the fields of the engine's schema. */
import type { JobSpec, JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export type BatchJob = KubeObject & { spec: JobSpec; status?: JobStatus };

export const BATCH_JOBS: ResourceType<BatchJob> = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
};

/** Holds a pod until it is counted in the status of its Job. Every pod of a Job is created with it. */
export const TRACKING_FINALIZER = 'batch.kubernetes.io/job-tracking';

const OWN_NAME = 'kubernetes.io/job-controller';

export function isJobFinished({ status }: BatchJob): boolean {
  return isTrue(status?.conditions, 'Complete') || isTrue(status?.conditions, 'Failed');
}

/** Reports whether another controller manages the Job. */
export function isManagedElsewhere({ spec }: BatchJob): boolean {
  return spec.managedBy !== undefined && spec.managedBy !== OWN_NAME;
}

export function isIndexed({ completionMode }: JobSpec): boolean {
  return completionMode === 'Indexed';
}

/** Reports whether a pod under deletion is replaced only after it has ended. */
export function replacesEndedPodsOnly({ podReplacementPolicy, podFailurePolicy }: JobSpec): boolean {
  return podReplacementPolicy === 'Failed' || podFailurePolicy !== undefined;
}
