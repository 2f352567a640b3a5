/**
 * Runs the Job: creates its plan and works through it. The Job can be killed at any time and started again; it
 * continues from its plan, its notes and the current state. It sets VM `status.machineTypeRestartRequired` and clears
 * it, as controllers/vm does.
 *
 *   plan (ConfigMaps) ─► check all existing marks ─► each VM of the plan: patch, mark or restart ─► notes (ConfigMaps)
 */
import { configurationOf } from '#api/kubevirt/configuration.ts';
import { KUBEVIRTS } from '#api/kubevirt/kind.ts';
import type { JobReference } from '#api/machine-types/kinds.ts';
import { canonicalTypes } from '#api/machine-types/node-types.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import type { EntryState } from '#api/machine-types/plan.ts';
import type { TypeMeanings } from '#api/machine-types/restart-mark.ts';
import type { SelectContext } from '#api/machine-types/select-vm.ts';
import { KUBEVIRT_NAME, SYSTEM_NAMESPACE } from '#api/names.ts';
import { checkMachineType } from '#api/validation/spec/machine.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { raceSignal } from '#lib/race-signal.ts';
import type { Client } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import { listAll } from '#client/paged-list.ts';
import { isApiError } from '#kube/api-error.ts';
import { NODES } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { checkMarks } from '#transition/check-marks.ts';
import { withRetries } from '#transition/with-retries.ts';
import { buildPlan, loadOrCreatePlan, type StoredPlan } from '#transition/plan-store.ts';
import { TransitionNotes } from '#transition/transition-notes.ts';
import { TransitionRun, type Informers } from '#transition/transition-run.ts';

interface TransitionParts {
  readonly client: Client;
  readonly job: JobReference;
  readonly options: TransitionOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** A failure that every retry would repeat. */
export class TransitionError extends Error {
  override name = 'TransitionError';
}

/**
 * Resolves to `done` when every VM of the plan is settled, although some may have failed, or to `failed` if more than
 * maxFailures have. Rejects with the reason of the signal, or with TransitionError.
 */
export async function runTransition(parts: TransitionParts): Promise<'done' | 'failed'> {
  const { client, job, clock, log } = parts;
  const finishing = new AbortController();
  const signal = AbortSignal.any([parts.signal, finishing.signal]);
  const informers = createInformers(parts);
  const started = Object.values(informers).map((informer) => informer.start({ signal }));
  try {
    const plan = await loadPlan({ ...parts, signal }, informers);
    const { entries } = plan;
    const total = { vms: entries.length, running: entries.filter(({ vmiUid }) => vmiUid !== undefined).length };
    log.info(total, plan.isNew ? 'wrote the plan' : 'continuing with the existing plan');
    const notes: TransitionNotes = new TransitionNotes({
      ...{ client, job, clock, log, notes: plan.notes, names: plan.names },
      onWritten: (indexes) => run.wake(indexes),
    });
    await checkMarks({ ...parts, signal }, entries, () => readTypeMeanings({ client, signal }));
    const run = new TransitionRun({ ...parts, ...informers, entries, notes, signal });
    started.push(notes.run({ signal }));
    const outcome = await run.run();
    await raceSignal(notes.allWritten(), signal);
    log.info(
      countStates(entries.map((_, index) => notes.get(index).state)),
      outcome === 'done' ? 'done' : 'too many VMs failed',
    );
    return outcome;
  } finally {
    finishing.abort(new Error('the transition is over'));
    await Promise.all(started);
  }
}

function createInformers({ client: reader, clock, log, options: { namespace, name } }: TransitionParts): Informers {
  const scope = {
    ...(namespace !== undefined && { namespace }),
    // VM, instance and record have the same name.
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
  };
  const informer = <T extends KubeObject>(type: ResourceType<T>) =>
    new Informer({ reader, type, clock, log, ...scope });
  return {
    vms: informer(VIRTUAL_MACHINES),
    vmis: informer(VIRTUAL_MACHINE_INSTANCES),
    records: informer(VIRTUAL_MACHINE_IDENTITIES),
  };
}

async function loadPlan(parts: TransitionParts, { vms, vmis, records }: Informers): Promise<StoredPlan> {
  await Promise.all([vms.waitForSync(), vmis.waitForSync(), records.waitForSync()]).catch((error: unknown) => {
    throw parts.signal.aborted ? parts.signal.reason : error;
  });
  return await withRetries(parts, 'create the plan', () =>
    loadOrCreatePlan(parts, async () => {
      const context = await readSelectContext(parts);
      return buildPlan(vms.list(), (key) => vmis.get(key), parts.options, context);
    }),
  );
}

/** Reads the meaning of machine types; throws if VMs may not have the target type. */
async function readSelectContext({ client, options: { target }, signal }: TransitionParts): Promise<SelectContext> {
  const settings = configurationOf(await readKubeVirt({ client, signal }));
  const errors = target === undefined ? [] : checkMachineType(target, 'JOB_TARGET', settings);
  if (errors.length > 0) throw new TransitionError(errors.map(({ message }) => message).join('; '));
  return await readTypeMeanings({ client, signal });
}

async function readTypeMeanings({ client, signal }: Pick<TransitionParts, 'client' | 'signal'>): Promise<TypeMeanings> {
  const { defaultMachineType: defaultType } = configurationOf(await readKubeVirt({ client, signal }));
  const { items: nodes } = await listAll(client, NODES, { signal });
  return { defaultType, canonical: canonicalTypes(nodes) };
}

async function readKubeVirt({ client, signal }: Pick<TransitionParts, 'client' | 'signal'>) {
  try {
    return await client.get(KUBEVIRTS, { namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME }, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

function countStates(states: readonly EntryState[]): Partial<Record<EntryState, number>> {
  const counts: Partial<Record<EntryState, number>> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}
