/** Reads Jobs of ours, their plans and their notes, and what has become of each VM since. */
import { stateOf } from '#api/machine-types/entry-state.ts';
import { JOBS, type Job, type JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { TRANSITION_LABEL, TRANSITION_LABEL_OF_JOBS } from '#api/machine-types/names.ts';
import { readPlan, readProgress, type EntryNote, type PlanEntry } from '#api/machine-types/plan.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/api-connection.ts';
import { CommandError } from '#cli/flags.ts';
import { listAll } from '#cli/list-all.ts';
import { readFleet } from '#cli/machine-types/read-fleet.ts';
import { messageOf } from '#cli/message-of.ts';
import { readObject } from '#cli/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get' | 'namespace'>;
type Say = (line: string) => void;

export interface Transition {
  readonly job: Stored<Job>;
  readonly configMaps: readonly Stored<ConfigMap>[];
  /** Undefined while it is not made: then nothing has been done. */
  readonly plan: readonly PlanEntry[] | undefined;
  /** By the index of their entry. */
  readonly notes: ReadonlyMap<number, EntryNote>;
}

/** An entry of a plan, and what is true of it now. */
export interface Followed {
  readonly entry: PlanEntry;
  readonly note: EntryNote;
  /** Undefined where it is gone. */
  readonly vm: Stored<VirtualMachine> | undefined;
}

/** Oldest first. Throws as `api.get` does. */
export async function readJobs(api: Api, say: Say): Promise<Stored<Job>[]> {
  const path = collectionPath(JOBS, SYSTEM_NAMESPACE);
  const labelSelector = `${TRANSITION_LABEL}=${TRANSITION_LABEL_OF_JOBS}`;
  const jobs = await listAll(api, { path, labelSelector }, (object) => object as Stored<Job>, say);
  return jobs.toSorted((a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp));
}

/** Throws CommandError where there is none, or it is none of ours. */
export async function readJob(api: Api, name: string): Promise<Stored<Job>> {
  if (name === '') throw new CommandError('expected the name of a job');
  const job = await findJob(api, name);
  if (job === undefined) throw new CommandError(`Cannot find the job ${name} in namespace ${SYSTEM_NAMESPACE}`);
  if (job.metadata.labels?.[TRANSITION_LABEL] === TRANSITION_LABEL_OF_JOBS) return job;
  throw new CommandError(`Cannot use the job ${name}: it was not created by virtctl update machine-types`);
}

export async function findJob(api: Api, name: string): Promise<Stored<Job> | undefined> {
  try {
    return await readObject(api, JOBS, name, SYSTEM_NAMESPACE);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Throws CommandError for a plan that cannot be read. */
export async function readTransition(api: Api, job: Stored<Job>, say: Say): Promise<Transition> {
  const { uid } = job.metadata;
  const path = collectionPath(CONFIG_MAPS, SYSTEM_NAMESPACE);
  const collection = { path, labelSelector: `${TRANSITION_LABEL}=${uid}` };
  const configMaps = await listAll(api, collection, (object) => object as Stored<ConfigMap>, say);
  const reference = referenceOf(job);
  try {
    return { job, configMaps, plan: readPlan(reference, configMaps), notes: readProgress(reference, configMaps) };
  } catch (cause) {
    throw new CommandError(messageOf(cause), { cause });
  }
}

function referenceOf({ metadata }: Stored<Job>): JobReference {
  return { namespace: SYSTEM_NAMESPACE, name: metadata.name, uid: metadata.uid };
}

/** All entries of plans as they are now, in the order of the plans. Reads the VMs once for all of them. */
export async function followAll(api: Api, transitions: readonly Transition[], say: Say): Promise<Followed[][]> {
  const entries = transitions.flatMap(({ plan }) => plan ?? []);
  const uids = new Set(entries.map(({ uid }) => uid));
  const namespaces = [...new Set(entries.map(({ namespace }) => namespace))];
  const query = { namespace: namespaces.length === 1 ? namespaces[0] : undefined, say };
  const keeps = ({ metadata }: Stored<VirtualMachine>) => uids.has(metadata.uid);
  const { vms, vmis } = uids.size === 0 ? { vms: [], vmis: new Map() } : await readFleet(api, { ...query, keeps });
  const byUid = new Map(vms.map((vm) => [vm.metadata.uid, vm]));
  return transitions.map(({ plan = [], notes }) =>
    plan.map((entry, index) => {
      const vm = byUid.get(entry.uid);
      return { entry, vm, note: stateOf(entry, notes.get(index), vm, vmis.get(entry.uid)) };
    }),
  );
}
