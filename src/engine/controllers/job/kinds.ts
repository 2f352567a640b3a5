/** Jobs and their pods as the Job controllers see them. */
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

/** Holds a pod until it stands in its Job's status, so that none is lost; every pod that a Job makes carries it. */
export const TRACKING_FINALIZER = 'batch.kubernetes.io/job-tracking';

const OWN_NAME = 'kubernetes.io/job-controller';

export function isJobFinished({ status }: BatchJob): boolean {
  return isTrue(status?.conditions, 'Complete') || isTrue(status?.conditions, 'Failed');
}

/** Somebody else's controller takes care of it. */
export function isManagedElsewhere({ spec }: BatchJob): boolean {
  return spec.managedBy !== undefined && spec.managedBy !== OWN_NAME;
}

export function isIndexed({ completionMode }: JobSpec): boolean {
  return completionMode === 'Indexed';
}

/** A pod is replaced only when it has ended, not as soon as it is asked to. */
export function replacesEndedPodsOnly({ podReplacementPolicy, podFailurePolicy }: JobSpec): boolean {
  return podReplacementPolicy === 'Failed' || podFailurePolicy !== undefined;
}
