/**
 * The controller of batch/v1 Jobs: observes a Job and its pods, decides (decide-job.ts), and remembers failures for the
 * backoff. Node agents run the pods. Jobs with the `managedBy` of another controller are ignored.
 */
import type { Reader } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import type { EngineControllerParts, EngineController } from '#engine/controllers/engine-controller.ts';
import { type FailureRecord, learnFailures } from '#engine/controllers/job/backoff.ts';
import { selects, wouldAdopt } from '#engine/controllers/job/adoption.ts';
import { decideJob } from '#engine/controllers/job/decide-job.ts';
import type { JobWorld } from '#engine/controllers/job/job-world.ts';
import { type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import { isJobFinished, isManagedElsewhere, type BatchJob, BATCH_JOBS } from '#engine/controllers/job/kinds.ts';
import { jobKeyOf, PodIndex } from '#engine/controllers/job/pod-index.ts';
import { strayPodController } from '#engine/controllers/job/stray-pods.ts';
import { NAME_LABEL } from '#engine/registry/kinds/job/job-labels.ts';
import { isApiError } from '#kube/api-error.ts';
import { controllerOf, type Stored } from '#kube/meta.ts';
import { type ControllerDefinition, source, startController } from '#runtime/controller.ts';

const CONCURRENCY = 5;

export const jobController: EngineController = {
  account: 'job-controller',
  start(parts) {
    const jobs = parts.informer(BATCH_JOBS);
    const pods = parts.informer(ENGINE_PODS);
    const index = new PodIndex(pods, parts);
    const strays = strayPodController({ reader: parts.client, jobs, pods, index });
    return [startController(jobDefinition(parts, index), parts), startController(strays, parts)];
  },
};

function jobDefinition(
  { client, informer, clock, signal }: EngineControllerParts,
  index: PodIndex,
): ControllerDefinition<JobWorld> {
  const jobs = informer(BATCH_JOBS);
  const pods = informer(ENGINE_PODS);
  /** By key. A Job with another uid of the same name starts with an empty record. */
  const failureRecords = new Map<string, { readonly uid: string; readonly failures: FailureRecord }>();
  const manualSelectorJobs = indexManualSelectorJobs(jobs, signal);

  return {
    name: 'job-controller',
    type: BATCH_JOBS,
    concurrency: CONCURRENCY,
    sources: [source(jobs), source(pods, (pod) => jobKeysFor(pod, manualSelectorJobs))],
    async observe(key, options) {
      const job = jobs.get(key);
      if (job === undefined || isJobFinished(job) || isManagedElsewhere(job)) {
        failureRecords.delete(key);
        return undefined;
      }
      const orphans = orphansOf(job, index);
      // The cache is behind. The next watch event enqueues the Job again.
      if (wouldAdopt(job, orphans) && !(await isJobAlive(client, job, options))) return undefined;
      const { uid, namespace = '' } = job.metadata;
      const own = index.ownedBy(uid);
      const record = failureRecords.get(key);
      const failures = learnFailures(record?.uid === uid ? record.failures : undefined, own, job.spec);
      failureRecords.set(key, { uid, failures });
      return {
        job,
        pods: own,
        orphans,
        failures,
        isTaken: (name) => index.isTaken(namespace, name),
        nowMs: clock.now(),
      };
    },
    decide: decideJob,
    subject: ({ job }) => job,
  };
}

function orphansOf(job: Stored<BatchJob>, index: PodIndex): readonly Stored<EnginePod>[] {
  return index.uncontrolledFor(job).filter((pod) => selects(job, pod));
}

/**
 * Asks the API whether the Job exists and is not under deletion. Required before pods are adopted: if the Job was deleted
 * with `Orphan`, its pods must stay orphans, or the garbage collector would delete them.
 */
async function isJobAlive(
  reader: Pick<Reader, 'get'>,
  job: Stored<BatchJob>,
  options: { signal: AbortSignal },
): Promise<boolean> {
  const { namespace, name, uid } = job.metadata;
  try {
    const { metadata } = await reader.get(BATCH_JOBS, { namespace, name }, options);
    return metadata.uid === uid && metadata.deletionTimestamp === undefined;
  } catch (error) {
    if (isApiError(error, 'NotFound') && error.details?.name === name) return false;
    throw error;
  }
}

/** Returns the keys of Jobs with manualSelector by namespace, kept up to date. They may select any pod. */
function indexManualSelectorJobs(
  jobs: Informer<BatchJob>,
  signal: AbortSignal,
): ReadonlyMap<string, ReadonlySet<string>> {
  const keys = new Map<string, Set<string>>();
  const unsubscribe = jobs.onChange((key, change) => {
    const { namespace = '' } = (change.new ?? change.old)!.metadata;
    const jobKeys = keys.get(namespace) ?? new Set();
    if (change.new?.spec.manualSelector === true) keys.set(namespace, jobKeys.add(key));
    else if (jobKeys.delete(key) && jobKeys.size === 0) keys.delete(namespace);
  });
  signal.addEventListener('abort', unsubscribe, { once: true });
  return keys;
}

function jobKeysFor(pod: Stored<EnginePod>, manualSelectorJobs: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const owner = jobKeyOf(pod);
  if (owner !== undefined) return [owner];
  if (controllerOf(pod) !== undefined) return [];
  const { namespace = '', labels } = pod.metadata;
  const name = labels?.[NAME_LABEL];
  const named = name === undefined ? [] : [keyOf({ namespace, name })];
  return [...named, ...(manualSelectorJobs.get(namespace) ?? [])];
}
