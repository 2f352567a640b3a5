/** Jobs and their pods as the Job controllers see them. */
import type { JobSpec, JobStatus } from '#engine/registry/kinds/job/job-schema.ts';
import { isTrue } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';

export type Job = KubeObject & { spec: JobSpec; status?: JobStatus };

export const JOBS: ResourceType<Job> = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
};

/** Holds a pod until it stands in its Job's status, so that none is lost; every pod that a Job makes carries it. */
export const TRACKING_FINALIZER = 'batch.kubernetes.io/job-tracking';

const OURS = 'kubernetes.io/job-controller';

export function isFinished({ status }: Job): boolean {
  return isTrue(status?.conditions, 'Complete') || isTrue(status?.conditions, 'Failed');
}

/** Somebody else's controller takes care of it. */
export function isForeign({ spec }: Job): boolean {
  return spec.managedBy !== undefined && spec.managedBy !== OURS;
}

export function isIndexed({ completionMode }: JobSpec): boolean {
  return completionMode === 'Indexed';
}

/** A pod is replaced only when it has ended, not as soon as it is asked to. */
export function waitsForEnd({ podReplacementPolicy, podFailurePolicy }: JobSpec): boolean {
  return podReplacementPolicy === 'Failed' || podFailurePolicy !== undefined;
}
