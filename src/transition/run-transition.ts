/**
 * One run of the Job: its plan, then whatever the plan needs. May be killed at any moment and started again: it goes on
 * from its plan, its notes and what is true. It sets VM `status.machineTypeRestartRequired`, and clears it as
 * controllers/vm does.
 *
 *   plan (ConfigMaps) ─► every mark there is: checked ─► each VM of the plan: patch, mark or restart ─► notes (ConfigMaps)
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
import { checkMachineType } from '#api/validation/machine.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_IDENTITIES } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { abortable } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import { listAll } from '#client/paged-list.ts';
import { isApiError } from '#kube/api-error.ts';
import { NODES } from '#kube/core-kinds.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { checkMarks } from '#transition/check-marks.ts';
import { persist } from '#transition/persist.ts';
import { makePlan, storedPlan, type StoredPlan } from '#transition/plan-store.ts';
import { ProgressNotes } from '#transition/progress-notes.ts';
import { TransitionRun, type Informers } from '#transition/transition-run.ts';

export interface TransitionParts {
  readonly client: Client;
  readonly job: JobReference;
  readonly options: TransitionOptions;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** It cannot be done as asked, whoever tries it again. */
export class TransitionError extends Error {
  override name = 'TransitionError';
}

/**
 * `done`: every VM of the plan is settled, though some may have failed. `failed`: more than maxFailures did. Rejects with
 * the reason of the signal, and with TransitionError.
 */
export async function runTransition(parts: TransitionParts): Promise<'done' | 'failed'> {
  const { client, job, clock, log } = parts;
  const ending = new AbortController();
  const signal = AbortSignal.any([parts.signal, ending.signal]);
  const informers = informersOf(parts);
  const started = Object.values(informers).map((informer) => informer.start({ signal }));
  try {
    const plan = await planOf({ ...parts, signal }, informers);
    const { entries } = plan;
    const total = { vms: entries.length, running: entries.filter(({ vmiUid }) => vmiUid !== undefined).length };
    log.info(total, plan.isNew ? 'the plan is written' : 'there is a plan; going on with it');
    const notes: ProgressNotes = new ProgressNotes({
      ...{ client, job, clock, log, notes: plan.notes, names: plan.names },
      onWritten: (indexes) => run.wake(indexes),
    });
    await checkMarks({ ...parts, signal }, entries, () => meaningsOf({ client, signal }));
    const run = new TransitionRun({ ...parts, ...informers, entries, notes, signal });
    started.push(notes.run({ signal }));
    const outcome = await run.run();
    await abortable(notes.allWritten(), signal);
    log.info(
      countsOf(entries.map((_, index) => notes.get(index).state)),
      outcome === 'done' ? 'done' : 'too many failed',
    );
    return outcome;
  } finally {
    ending.abort(new Error('the transition is over'));
    await Promise.all(started);
  }
}

function informersOf({ client: reader, clock, log, options: { namespace, name } }: TransitionParts): Informers {
  const scope = {
    ...(namespace !== undefined && { namespace }),
    // All three have the name of the VM.
    ...(name !== undefined && { fieldSelector: `metadata.name=${name}` }),
  };
  const of = <T extends KubeObject>(type: ResourceType<T>) => new Informer({ reader, type, clock, log, ...scope });
  return {
    vms: of(VIRTUAL_MACHINES),
    vmis: of(VIRTUAL_MACHINE_INSTANCES),
    records: of(VIRTUAL_MACHINE_IDENTITIES),
  };
}

async function planOf(parts: TransitionParts, { vms, vmis, records }: Informers): Promise<StoredPlan> {
  await Promise.all([vms.synced(), vmis.synced(), records.synced()]).catch((error: unknown) => {
    throw parts.signal.aborted ? parts.signal.reason : error;
  });
  return await persist(parts, 'make the plan', () =>
    storedPlan(parts, async () => {
      const context = await contextOf(parts);
      return makePlan(vms.list(), (key) => vmis.get(key), parts.options, context);
    }),
  );
}

/** What machine types mean here. Throws where the target is none that VMs may have. */
async function contextOf({ client, options: { target }, signal }: TransitionParts): Promise<SelectContext> {
  const settings = configurationOf(await kubevirtOf({ client, signal }));
  const faults = target === undefined ? [] : checkMachineType(target, 'JOB_TARGET', settings);
  if (faults.length > 0) throw new TransitionError(faults.map(({ message }) => message).join('; '));
  return await meaningsOf({ client, signal });
}

async function meaningsOf({ client, signal }: Pick<TransitionParts, 'client' | 'signal'>): Promise<TypeMeanings> {
  const { defaultMachineType: defaultType } = configurationOf(await kubevirtOf({ client, signal }));
  const { items: nodes } = await listAll(client, NODES, { signal });
  return { defaultType, canonical: canonicalTypes(nodes) };
}

async function kubevirtOf({ client, signal }: Pick<TransitionParts, 'client' | 'signal'>) {
  try {
    return await client.get(KUBEVIRTS, { namespace: SYSTEM_NAMESPACE, name: KUBEVIRT_NAME }, { signal });
  } catch (error) {
    if (isApiError(error, 'NotFound')) return undefined;
    throw error;
  }
}

function countsOf(states: readonly EntryState[]): Partial<Record<EntryState, number>> {
  const counts: Partial<Record<EntryState, number>> = {};
  for (const state of states) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}
