/** Reads transition Jobs with their plans and progress notes, and the current state of each VM. */
import { decideEntryState } from '#api/machine-types/entry-state.ts';
import { TRANSITION_JOBS, type TransitionJob, type JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS, type ConfigMap } from '#kube/core-kinds.ts';
import { TRANSITION_LABEL, TRANSITION_LABEL_OF_JOBS } from '#api/machine-types/names.ts';
import { readPlan, readProgress, type EntryNote, type PlanEntry } from '#api/machine-types/plan.ts';
import { SYSTEM_NAMESPACE } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { CommandError } from '#lib/command-line/command-error.ts';
import { listCollection } from '#cli/connection/list-collection.ts';
import { readFleet } from '#cli/machine-types/read-fleet.ts';
import { errorMessage } from '#lib/error-message.ts';
import { readObject } from '#cli/connection/vm-objects.ts';
import { collectionPath } from '#client/resource-path.ts';
import { isApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';

type Api = Pick<ApiConnection, 'get' | 'namespace'>;
type Report = (line: string) => void;

export interface Transition {
  readonly job: Stored<TransitionJob>;
  readonly configMaps: readonly Stored<ConfigMap>[];
  /** undefined until it exists; nothing was changed then. */
  readonly plan: readonly PlanEntry[] | undefined;
  /** Notes by the index of the plan entry. */
  readonly notes: ReadonlyMap<number, EntryNote>;
}

/** An entry of a plan with its current state. */
export interface TrackedEntry {
  readonly entry: PlanEntry;
  readonly note: EntryNote;
  /** undefined if it was deleted. */
  readonly vm: Stored<VirtualMachine> | undefined;
}

/** Lists transition Jobs, oldest first. Throws like `api.get`. */
export async function listTransitionJobs(api: Api, report: Report): Promise<Stored<TransitionJob>[]> {
  const path = collectionPath(TRANSITION_JOBS, SYSTEM_NAMESPACE);
  const labelSelector = `${TRANSITION_LABEL}=${TRANSITION_LABEL_OF_JOBS}`;
  const jobs = await listCollection(api, { path, labelSelector }, (object) => object as Stored<TransitionJob>, report);
  return jobs.toSorted((a, b) => a.metadata.creationTimestamp.localeCompare(b.metadata.creationTimestamp));
}

/** Throws CommandError if the Job does not exist or is not a transition Job. */
export async function readTransitionJob(api: Api, name: string): Promise<Stored<TransitionJob>> {
  if (name === '') throw new CommandError('expected the name of a job');
  const job = await findTransitionJob(api, name);
  if (job === undefined)
    throw new CommandError(
      `Cannot find the job ${name} in namespace ${SYSTEM_NAMESPACE}; list the jobs with virtctl update machine-types list`,
    );
  if (job.metadata.labels?.[TRANSITION_LABEL] === TRANSITION_LABEL_OF_JOBS) return job;
  throw new CommandError(`Cannot use the job ${name}: it was not created by virtctl update machine-types`);
}

export async function findTransitionJob(api: Api, name: string): Promise<Stored<TransitionJob> | undefined> {
  try {
    return await readObject(api, TRANSITION_JOBS, name, SYSTEM_NAMESPACE);
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

/** Throws CommandError if the plan cannot be read. */
export async function readTransition(api: Api, job: Stored<TransitionJob>, report: Report): Promise<Transition> {
  const { uid } = job.metadata;
  const path = collectionPath(CONFIG_MAPS, SYSTEM_NAMESPACE);
  const collection = { path, labelSelector: `${TRANSITION_LABEL}=${uid}` };
  const configMaps = await listCollection(api, collection, (object) => object as Stored<ConfigMap>, report);
  const reference = referenceOf(job);
  try {
    return { job, configMaps, plan: readPlan(reference, configMaps), notes: readProgress(reference, configMaps) };
  } catch (cause) {
    throw new CommandError(errorMessage(cause), { cause });
  }
}

function referenceOf({ metadata }: Stored<TransitionJob>): JobReference {
  return { namespace: SYSTEM_NAMESPACE, name: metadata.name, uid: metadata.uid };
}

/** Returns the entries of all plans with their current state, in order. Reads the VMs once for all plans. */
export async function trackEntries(
  api: Api,
  transitions: readonly Transition[],
  report: Report,
): Promise<TrackedEntry[][]> {
  const entries = transitions.flatMap(({ plan }) => plan ?? []);
  const uids = new Set(entries.map(({ uid }) => uid));
  const namespaces = [...new Set(entries.map(({ namespace }) => namespace))];
  const query = { namespace: namespaces.length === 1 ? namespaces[0] : undefined, report };
  const filter = ({ metadata }: Stored<VirtualMachine>) => uids.has(metadata.uid);
  const { vms, vmis } = uids.size === 0 ? { vms: [], vmis: new Map() } : await readFleet(api, { ...query, filter });
  const byUid = new Map(vms.map((vm) => [vm.metadata.uid, vm]));
  return transitions.map(({ plan = [], notes }) =>
    plan.map((entry, index) => {
      const vm = byUid.get(entry.uid);
      return { entry, vm, note: decideEntryState(entry, notes.get(index), vm, vmis.get(entry.uid)) };
    }),
  );
}
