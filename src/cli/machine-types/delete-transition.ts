/**
 * Ends a Job, and takes back what it would have looked after: its pod stops first, so that nobody marks VMs any more
 * while their marks are taken off. Whatever fails on the way leaves the Job suspended; once more goes on from there.
 *
 *   suspend ─► its pod is gone ─► what is true of each VM ─► marks off ─► pods, ConfigMaps, Job removed
 */
import { JOBS, type Job } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { keepWaiting } from '#cli/keep-waiting.ts';
import { listAll } from '#cli/list-all.ts';
import { hasEnded, isSuspended, JOB_NAME_LABEL } from '#cli/machine-types/job-state.ts';
import {
  findJob,
  followAll,
  readJobs,
  readTransition,
  type Followed,
  type Transition,
} from '#cli/machine-types/read-transitions.ts';
import { messageOf } from '#cli/message-of.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import { hasEnded as podHasEnded } from '#kube/pod-phase.ts';
import type { Clock } from '#lib/clock.ts';

const LOOK_EVERY_MS = 250;
/** A pod has 30 seconds to end, and its node may be slow to tell. */
const STOP_WITHIN_MS = 90_000;
const GONE_WITHIN_MS = 30_000;
/** How many requests run in parallel. */
const AT_ONCE = 8;

export interface DeleteOptions {
  readonly clock: Clock;
  readonly say: (line: string) => void;
}

/** Does not return while the program may still do something. Throws CommandError. */
export async function stopJob(api: ApiConnection, job: Stored<Job>, { clock, say }: DeleteOptions): Promise<void> {
  const { name, uid } = job.metadata;
  const path = objectPath(JOBS, { namespace: SYSTEM_NAMESPACE, name });
  if (!hasEnded(job)) await api.patch(path, { metadata: { uid }, spec: { suspend: true } });
  const beganAtMs = clock.elapsed();
  for (;;) {
    const now = await findJob(api, name);
    const gone = now === undefined || now.metadata.uid !== uid;
    const running = (await podsOf(api, name, say)).filter((pod) => !podHasEnded(pod));
    if (running.length === 0 && (gone || hasEnded(now) || isSuspended(now))) return;
    if (clock.elapsed() - beganAtMs > STOP_WITHIN_MS) {
      const pods = running.map(({ metadata }) => metadata.name).join(', ');
      const why = pods === '' ? 'its controller does not respond' : `${pods} still runs`;
      throw new CommandError(`Cannot stop job ${name}: ${why}; it stays suspended; delete it again`);
    }
    await keepWaiting(clock, LOOK_EVERY_MS);
  }
}

async function podsOf(api: ApiConnection, job: string, say: (line: string) => void): Promise<Stored<Pod>[]> {
  const collection = { path: collectionPath(PODS, SYSTEM_NAMESPACE), labelSelector: `${JOB_NAME_LABEL}=${job}` };
  return await listAll(api, collection, (object) => object as Stored<Pod>, say);
}

/** How many marks were taken off. Those that another Job looks after stay. Throws CommandError where some could not be. */
export async function resetMarks(
  api: ApiConnection,
  { job }: Transition,
  followed: readonly Followed[],
  { say }: DeleteOptions,
): Promise<number> {
  const marked = followed.filter(({ vm }) => vm?.status?.machineTypeRestartRequired === true);
  if (marked.length === 0) return 0;
  const held = await heldByOthers(api, job, say);
  const ours = marked.filter(({ entry }) => !held.has(entry.uid));
  const complaints: string[] = [];
  for (let at = 0; at < ours.length; at += AT_ONCE) {
    const answers = ours.slice(at, at + AT_ONCE).map(async ({ entry: { namespace, name, uid } }) => {
      const path = objectPath(VIRTUAL_MACHINES, { namespace, name, subresource: 'status' });
      try {
        const status = { machineTypeRestartRequired: false, machineTypeRestartInstanceUID: null };
        await api.patch(path, { metadata: { uid }, status });
      } catch (error) {
        if (!isApiError(error, 'NotFound')) complaints.push(`  ${namespace}/${name}: ${messageOf(error)}`);
      }
    });
    await Promise.all(answers);
  }
  if (complaints.length === 0) return ours.length;
  const what = `Cannot clear machineTypeRestartRequired of ${complaints.length} of ${ours.length} VMs; job ${job.metadata.name} stays suspended`;
  throw new CommandError([`${what}:`, ...complaints].join('\n'));
}

/** Uids of VMs in the plans of other Jobs that go on. */
async function heldByOthers(api: ApiConnection, job: Stored<Job>, say: (line: string) => void): Promise<Set<string>> {
  const others: Transition[] = [];
  for (const other of await readJobs(api, say)) {
    if (other.metadata.uid === job.metadata.uid || hasEnded(other)) continue;
    others.push(await readTransition(api, other, say));
  }
  const followed = (await followAll(api, others, say)).flat();
  return new Set(followed.flatMap(({ entry, note }) => (note.state === 'restartRequired' ? [entry.uid] : [])));
}

/**
 * The Job comes last: as long as it is there, whoever finds something left can do this again. Whether it is gone; others
 * may hold it for a while.
 */
export async function removeTransition(
  api: ApiConnection,
  { job, configMaps }: Transition,
  { clock, say }: DeleteOptions,
): Promise<boolean> {
  const { name, uid } = job.metadata;
  // Unless told otherwise the API keeps the pods of Jobs that are deleted, and what else they own.
  for (const pod of await podsOf(api, name, say)) await remove(api, PODS, pod);
  for (const configMap of configMaps) await remove(api, CONFIG_MAPS, configMap);
  await remove(api, JOBS, job);
  for (const beganAtMs = clock.elapsed(); clock.elapsed() - beganAtMs < GONE_WITHIN_MS;) {
    if ((await findJob(api, name))?.metadata.uid !== uid) return true;
    await keepWaiting(clock, LOOK_EVERY_MS);
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
