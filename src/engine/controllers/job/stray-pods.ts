/**
 * Removes the tracking finalizer from pods without a Job that would do so: the Job was deleted or has finished, or the pod
 * was orphaned. An active pod of a finished Job is deleted as well. It was created by a controller with an old cache.
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { removeStrayTracking } from '#engine/controllers/job/adoption.ts';
import { deletePod } from '#engine/controllers/job/decide-job.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { isJobFinished, isManagedElsewhere, type BatchJob, BATCH_JOBS } from '#engine/controllers/job/kinds.ts';
import { jobReference, type PodIndex } from '#engine/controllers/job/pod-index.ts';
import { isActiveJobPod, isTracked } from '#engine/controllers/job/pod-state.ts';
import { isApiError } from '#kube/api-error.ts';
import { controllerOf, type Stored } from '#kube/meta.ts';
import { type ControllerDefinition, source } from '#runtime/controller.ts';
import { EMPTY_PLAN, type Plan } from '#runtime/plan.ts';

interface StrayWorld {
  readonly pod: Stored<EnginePod>;
  /** undefined = it does not exist. */
  readonly job: Stored<BatchJob> | undefined;
}

export function decideStray({ pod, job }: StrayWorld): Plan {
  if (controllerOf(pod) !== undefined && jobReference(pod) === undefined) return EMPTY_PLAN;
  if (job !== undefined && (isManagedElsewhere(job) || !isJobFinished(job))) return EMPTY_PLAN;
  const changes = removeStrayTracking(pod, 'no Job counts the pod any more');
  return { changes: job !== undefined && isActiveJobPod(pod) ? [...changes, deletePod(pod)] : changes };
}

interface StrayParts {
  readonly reader: Reader;
  readonly jobs: Informer<BatchJob>;
  readonly pods: Informer<EnginePod>;
  readonly index: PodIndex;
}

export function strayPodController({ reader, jobs, pods, index }: StrayParts): ControllerDefinition<StrayWorld> {
  /** Returns the tracked pods of a Job that is finished or deleted. */
  const strayKeysOf = (job: Stored<BatchJob>): string[] => {
    const present = jobs.get(objectKey(job));
    if (present !== undefined && present.metadata.uid === job.metadata.uid && !isJobFinished(present)) return [];
    return index.ownedBy(job.metadata.uid).filter(isTracked).map(objectKey);
  };
  return {
    name: 'job-stray-pods',
    type: ENGINE_PODS,
    sources: [source(pods, (pod) => (isTracked(pod) ? [objectKey(pod)] : [])), source(jobs, strayKeysOf)],
    async observe(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined || !isTracked(pod)) return undefined;
      const reference = jobReference(pod);
      if (reference === undefined) return { pod, job: undefined };
      const name = { namespace: pod.metadata.namespace, name: reference.name };
      const known = jobs.get(keyOf(name));
      if (known?.metadata.uid === reference.uid) return { pod, job: known };
      // The cache may be behind. A pod that loses its finalizer too early is not counted.
      const job = await reader.get(BATCH_JOBS, name, { signal }).catch((error: unknown) => {
        if (!isApiError(error, 'NotFound')) throw error;
      });
      return { pod, job: job?.metadata.uid === reference.uid ? job : undefined };
    },
    decide: decideStray,
    // No Events: the pods no longer belong to a Job.
    subject: () => undefined,
  };
}
