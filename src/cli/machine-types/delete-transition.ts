/**
 * Stops and deletes a Job, and clears the marks of its VMs. The pod stops first, so that it does not set marks again. If a
 * step fails, the Job stays suspended, and deleting it again continues from there.
 *
 *   suspend ─► pod ended ─► read the state of each VM ─► clear marks ─► delete pods, ConfigMaps and Job
 */
import { TRANSITION_JOBS, type TransitionJob } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { sleepAlive } from '#lib/keep-alive.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { hasJobEnded, isSuspended, JOB_NAME_LABEL } from '#cli/machine-types/job-state.ts';
import {
  findTransitionJob,
  trackEntries,
  listTransitionJobs,
  readTransition,
  type TrackedEntry,
  type Transition,
} from '#cli/machine-types/read-transitions.ts';
import { errorMessage } from '#lib/error-message.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { hasEnded as podHasEnded } from '#kube/pod-phase.ts';
import type { Clock } from '#lib/clock.ts';

const POLL_INTERVAL_MS = 250;
/** A pod has 30 seconds to end, and its node may report this late. */
const STOP_TIMEOUT_MS = 90_000;
const REMOVAL_TIMEOUT_MS = 30_000;
/** The number of parallel requests. */
const CONCURRENCY = 8;

interface TransitionDeleteOptions {
  readonly clock: Clock;
  readonly report: (line: string) => void;
}

/** Suspends the Job and waits until its pod has ended. Throws CommandError. */
export async function stopJob(
  api: ApiConnection,
  job: Stored<TransitionJob>,
  { clock, report }: TransitionDeleteOptions,
): Promise<void> {
  const { name, uid } = job.metadata;
  const path = objectPath(TRANSITION_JOBS, { namespace: SYSTEM_NAMESPACE, name });
  if (!hasJobEnded(job)) await api.patch(path, { metadata: { uid }, spec: { suspend: true } });
  const beganAtMs = clock.elapsed();
  for (;;) {
    const now = await findTransitionJob(api, name);
    const isDeleted = now === undefined || now.metadata.uid !== uid;
    const running = (await podsOf(api, name, report)).filter((pod) => !podHasEnded(pod));
    if (running.length === 0 && (isDeleted || hasJobEnded(now) || isSuspended(now))) return;
    if (clock.elapsed() - beganAtMs > STOP_TIMEOUT_MS) {
      const pods = running.map(({ metadata }) => metadata.name).join(', ');
      const why = pods === '' ? 'its controller does not respond' : `${pods} still runs`;
      throw new CommandError(`Cannot stop job ${name}: ${why}; it stays suspended; delete it again`);
    }
    await sleepAlive(clock, POLL_INTERVAL_MS);
  }
}

async function podsOf(api: ApiConnection, job: string, report: (line: string) => void): Promise<Stored<Pod>[]> {
  const collection = { path: collectionPath(PODS, SYSTEM_NAMESPACE), labelSelector: `${JOB_NAME_LABEL}=${job}` };
  return await listCollection(api, collection, (object) => object as Stored<Pod>, report);
}

/**
 * Clears the marks of VMs and returns their number. Marks that another running Job needs are kept. Throws CommandError if
 * some could not be cleared.
 */
export async function resetMarks(
  api: ApiConnection,
  { job }: Transition,
  entries: readonly TrackedEntry[],
  { report }: TransitionDeleteOptions,
): Promise<number> {
  const marked = entries.filter(({ vm }) => vm?.status?.machineTypeRestartRequired === true);
  if (marked.length === 0) return 0;
  const heldUids = await listMarkedByOtherJobs(api, job, report);
  const toReset = marked.filter(({ entry }) => !heldUids.has(entry.uid));
  const errors: string[] = [];
  for (let at = 0; at < toReset.length; at += CONCURRENCY) {
    const requests = toReset.slice(at, at + CONCURRENCY).map(async ({ entry: { namespace, name, uid } }) => {
      const path = objectPath(VIRTUAL_MACHINES, { namespace, name, subresource: 'status' });
      try {
        const status = { machineTypeRestartRequired: false, machineTypeRestartInstanceUID: null };
        await api.patch(path, { metadata: { uid }, status });
      } catch (error) {
        if (!isApiError(error, 'NotFound')) errors.push(`  ${namespace}/${name}: ${errorMessage(error)}`);
      }
    });
    await Promise.all(requests);
  }
  if (errors.length === 0) return toReset.length;
  const what = `Cannot clear machineTypeRestartRequired of ${errors.length} of ${toReset.length} VMs; job ${job.metadata.name} stays suspended`;
  throw new CommandError([`${what}:`, ...errors].join('\n'));
}

/** Returns the uids of VMs that other running Jobs have marked. */
async function listMarkedByOtherJobs(
  api: ApiConnection,
  job: Stored<TransitionJob>,
  report: (line: string) => void,
): Promise<Set<string>> {
  const otherTransitions: Transition[] = [];
  for (const other of await listTransitionJobs(api, report)) {
    if (other.metadata.uid === job.metadata.uid || hasJobEnded(other)) continue;
    otherTransitions.push(await readTransition(api, other, report));
  }
  const entries = (await trackEntries(api, otherTransitions, report)).flat();
  return new Set(entries.flatMap(({ entry, note }) => (note.state === 'restartRequired' ? [entry.uid] : [])));
}

/**
 * Deletes pods, ConfigMaps and the Job. The Job comes last, so that a failed deletion can be repeated. Returns whether the
 * Job was removed; finalizers may hold it for a while.
 */
export async function removeTransition(
  api: ApiConnection,
  { job, configMaps }: Transition,
  { clock, report }: TransitionDeleteOptions,
): Promise<boolean> {
  const { name, uid } = job.metadata;
  // By default the API orphans the dependents of a deleted Job.
  for (const pod of await podsOf(api, name, report)) await remove(api, PODS, pod);
  for (const configMap of configMaps) await remove(api, CONFIG_MAPS, configMap);
  await remove(api, TRANSITION_JOBS, job);
  for (const beganAtMs = clock.elapsed(); clock.elapsed() - beganAtMs < REMOVAL_TIMEOUT_MS;) {
    if ((await findTransitionJob(api, name))?.metadata.uid !== uid) return true;
    await sleepAlive(clock, POLL_INTERVAL_MS);
  }
  return false;
}

async function remove<T extends KubeObject>(
  api: ApiConnection,
  type: ResourceType<T>,
  object: Stored<T>,
): Promise<void> {
  const { name, uid } = object.metadata;
  try {
    await api.remove(objectPath(type, { namespace: SYSTEM_NAMESPACE, name }), uid);
  } catch (error) {
    if (!isApiError(error, 'NotFound')) throw error;
  }
}
