/**
 * Pods that carry the Job finalizer and have no Job that would remove it: their Job is gone or has finished, or they
 * were orphaned. They are let go. A pod that a finished Job still has running is one too many (made by a controller
 * that looked at an old state), and is deleted.
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { releaseStray } from '#engine/controllers/job/claim.ts';
import { deletion } from '#engine/controllers/job/decide-job.ts';
import { type Pod, PODS } from '#engine/controllers/kinds.ts';
import { isFinished, isForeign, type Job, JOBS } from '#engine/controllers/job/kinds.ts';
import { controllerOf, jobReference, type PodIndex } from '#engine/controllers/job/pod-index.ts';
import { isActive, isTracked } from '#engine/controllers/job/pod-state.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { type ControllerDefinition, source } from '#runtime/controller.ts';
import { NOTHING, type Plan } from '#runtime/plan.ts';

export interface StrayWorld {
  readonly pod: Stored<Pod>;
  /** Absent: it is gone. */
  readonly job: Stored<Job> | undefined;
}

export function decideStray({ pod, job }: StrayWorld): Plan {
  if (controllerOf(pod) !== undefined && jobReference(pod) === undefined) return NOTHING;
  if (job !== undefined && (isForeign(job) || !isFinished(job))) return NOTHING;
  const changes = releaseStray(pod, 'no Job is left that would count the pod');
  return { changes: job !== undefined && isActive(pod) ? [...changes, deletion(pod)] : changes };
}

export interface StrayParts {
  readonly reader: Reader;
  readonly jobs: Informer<Job>;
  readonly pods: Informer<Pod>;
  readonly index: PodIndex;
}

export function strayPodController({ reader, jobs, pods, index }: StrayParts): ControllerDefinition<StrayWorld> {
  /** Pods hear of their Job only when it does not take care of them any more. */
  const left = (job: Stored<Job>): string[] => {
    const present = jobs.get(objectKey(job));
    if (present !== undefined && present.metadata.uid === job.metadata.uid && !isFinished(present)) return [];
    return index.ownedBy(job.metadata.uid).filter(isTracked).map(objectKey);
  };
  return {
    name: 'job-stray-pods',
    type: PODS,
    sources: [source(pods, (pod) => (isTracked(pod) ? [objectKey(pod)] : [])), source(jobs, left)],
    async observe(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined || !isTracked(pod)) return undefined;
      const reference = jobReference(pod);
      if (reference === undefined) return { pod, job: undefined };
      const name = { namespace: pod.metadata.namespace, name: reference.name };
      const known = jobs.get(keyOf(name));
      if (known?.metadata.uid === reference.uid) return { pod, job: known };
      // The cache may be behind; to let go of a pod too early is to lose it.
      const job = await reader.get(JOBS, name, { signal }).catch((error: unknown) => {
        if (!isApiError(error, 'NotFound')) throw error;
      });
      return { pod, job: job?.metadata.uid === reference.uid ? job : undefined };
    },
    decide: decideStray,
    // Nobody reads the Events of what is not theirs any more.
    subject: () => undefined,
  };
}
