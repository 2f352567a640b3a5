/**
 * Works off a plan: each VM whenever something happens to it, its instance or its record, until all entries are settled
 * or too many have failed. What is to be done is decide-entry.ts's; here it is done, in bounded numbers.
 */
import type { TransitionOptions } from '#api/machine-types/options.ts';
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { runStrategyOf } from '#api/can.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { ApiError, isApiError, isUnfitPatch } from '#kube/api-error.ts';
import type { KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';
import { decideEntry, isSettled, type Decision, type Step } from '#transition/decide-entry.ts';
import type { ProgressNotes } from '#transition/progress-notes.ts';
import { RestartSlots } from '#transition/restart-slots.ts';
import { markPatch, typePatch } from '#transition/type-patch.ts';
import type { AskVerb } from '#transition/verbs.ts';

export interface Informers {
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly records: Informer<VirtualMachineIdentity>;
}

export interface RunParts extends Informers {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly ask: AskVerb;
  readonly entries: readonly PlanEntry[];
  readonly notes: ProgressNotes;
  readonly options: Pick<TransitionOptions, 'restartNow' | 'maxRestarts' | 'maxFailures'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Enough to keep a server's group commits full. */
const CONCURRENCY = 32;
const BACKOFF = { firstMs: 200, maxMs: 30_000 };
/** What does not get better by being asked again. */
const REFUSED: ReadonlySet<number> = new Set([400, 403, 422]);

export class TransitionRun {
  readonly #parts: RunParts;
  readonly #queue: WorkQueue;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #slots: RestartSlots;
  /** Restarts that this process has asked for, with an answer. */
  readonly #asked = new Set<number>();
  readonly #over = Promise.withResolvers<'done' | 'failed'>();
  #open = 0;
  #failed = 0;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { clock, log, entries, notes, options } = parts;
    this.#indexOf = new Map(entries.map((entry, index) => [keyOf(entry), index]));
    const restarting = [...entries.keys()].filter((index) => notes.get(index).state === 'restarting');
    this.#slots = new RestartSlots(options.maxRestarts, restarting);
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: BACKOFF,
      work: (key) => this.#turn(key),
      onError: (key, error, retry) => log.warn({ vm: key, err: error, ...retry }, 'Cannot go on; trying again'),
    });
  }

  /** Restarts that were waiting for their note to be on disk. */
  wake(indexes: Iterable<number>): void {
    for (const index of indexes) if (this.#slots.holds(index)) this.#add(index);
  }

  /** Resolves when all is settled, or too much has failed; rejects with the signal's reason. Called once. */
  async run(): Promise<'done' | 'failed'> {
    const { entries, notes, vms, vmis, records, signal } = this.#parts;
    const onAbort = (): void => this.#over.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    for (const index of entries.keys()) this.#count(notes.get(index), 1);
    const look = (key: string): void => {
      if (this.#indexOf.has(key)) this.#queue.add(key);
    };
    const ends = [vms, vmis, records].map((informer) => informer.onChange(look));
    for (const index of entries.keys()) this.#add(index);
    this.#conclude();
    try {
      return await this.#over.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      for (const end of ends) end();
      await this.#queue.shutdown();
    }
  }

  async #turn(key: string): Promise<WorkResult | void> {
    const index = this.#indexOf.get(key);
    const entry = index === undefined ? undefined : this.#parts.entries[index];
    if (index === undefined || entry === undefined) return;
    try {
      return await this.#work(index, entry);
    } finally {
      for (const next of this.#slots.call()) this.#add(next);
    }
  }

  async #work(index: number, entry: PlanEntry): Promise<WorkResult | void> {
    const { vms, vmis, notes } = this.#parts;
    const key = keyOf(entry);
    const before = notes.get(index);
    const decision = this.#decide(index, entry, { vm: vms.get(key), vmi: vmis.get(key) });
    const { step, againAfterMs: afterMs } = decision;
    if (step?.do === 'restart') {
      await this.#restart(index, entry, decision);
    } else {
      if (step !== undefined && !(await this.#perform(index, entry, step))) return;
      this.#note(index, decision.note);
      if (decision.note.state !== 'restarting') this.#slots.release(index);
    }
    // What comes after the step is another decision.
    return step !== undefined && step.do !== 'restart' && notes.get(index) !== before ? { afterMs: 0 } : { afterMs };
  }

  #decide(
    index: number,
    entry: PlanEntry,
    objects: { vm: Stored<VirtualMachine> | undefined; vmi: Stored<VirtualMachineInstance> | undefined },
  ): Decision {
    const { notes, records, options, clock } = this.#parts;
    const { restartNow } = options;
    const asked = this.#asked.has(index);
    const record = records.get(keyOf(entry));
    return decideEntry({ entry, note: notes.get(index), ...objects, record, restartNow, asked, nowMs: clock.now() });
  }

  /** False where it was refused for good, which is noted. */
  async #perform(index: number, entry: PlanEntry, step: Exclude<Step, { do: 'restart' }>): Promise<boolean> {
    const { client, vms, vmis, signal } = this.#parts;
    const { namespace, name } = entry;
    const [operations, subresource] =
      step.do === 'patchType' ? [typePatch(entry, step.vm)] : [markPatch(step.vm, step.required), 'status'];
    const body = { type: 'json', body: operations } as const;
    try {
      const options = { signal, ...(subresource !== undefined && { subresource }) };
      const vm = await client.patch(VIRTUAL_MACHINES, { namespace, name }, body, options);
      // The next decision must not be made on what was before.
      await vms.reached(vm.metadata.resourceVersion, { signal });
      if (step.do === 'patchType' && runStrategyOf(vm) !== 'Halted') {
        // It may have started a moment before, with the old type.
        const vmi = await this.#find(VIRTUAL_MACHINE_INSTANCES, entry);
        if (vmi !== undefined) await vmis.reached(vmi.metadata.resourceVersion, { signal });
      }
      return true;
    } catch (error) {
      if (!this.#isRefusal(error)) throw error;
      this.#fail(index, error);
      return false;
    }
  }

  async #restart(index: number, entry: PlanEntry, { note }: Decision): Promise<void> {
    const { notes, ask, signal, log } = this.#parts;
    if (!this.#slots.take(index)) {
      const { state, reason } = notes.get(index);
      if (state !== 'updated' || reason !== undefined) this.#note(index, { ...note, state: 'updated' });
      return;
    }
    this.#note(index, note);
    if (!notes.isWritten(index)) return;
    // One that was killed may have asked before us: what the server says counts, not what we have heard of it.
    const vm = await this.#find(VIRTUAL_MACHINES, entry);
    const vmi = await this.#find(VIRTUAL_MACHINE_INSTANCES, entry);
    const { step } = this.#decide(index, entry, { vm, vmi });
    if (step?.do !== 'restart') return;
    const { namespace, name } = entry;
    try {
      await ask(step.verb, { namespace, name }, { signal });
      this.#asked.add(index);
      log.info({ vm: keyOf(entry), verb: step.verb }, 'asked for the restart');
    } catch (error) {
      if (!this.#isRefusal(error)) throw error;
      this.#fail(index, error);
    }
  }

  async #find<T extends KubeObject>(
    type: ResourceType<T>,
    { namespace, name }: PlanEntry,
  ): Promise<Stored<T> | undefined> {
    const { client, signal } = this.#parts;
    try {
      return await client.get(type, { namespace, name }, { signal });
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  #isRefusal(error: unknown): error is ApiError {
    return error instanceof ApiError && REFUSED.has(error.code) && !isUnfitPatch(error);
  }

  #fail(index: number, { message }: ApiError): void {
    const { vmiUid } = this.#parts.notes.get(index);
    this.#slots.release(index);
    this.#note(index, { state: 'failed', reason: message, ...(vmiUid !== undefined && { vmiUid }) });
  }

  #note(index: number, note: EntryNote): void {
    const { notes, entries, log } = this.#parts;
    const before = notes.get(index);
    if (before === note) return;
    notes.set(index, note);
    this.#count(before, -1);
    this.#count(note, 1);
    const { namespace, name } = entries[index] ?? {};
    const fields = { vm: `${namespace}/${name}`, state: note.state, reason: note.reason };
    if (note.state === 'failed') log.error(fields, 'failed');
    else if (note.state === before.state) log.debug(fields, 'waits');
    else log.info(fields, note.state);
    this.#conclude();
  }

  #count(note: EntryNote, by: 1 | -1): void {
    if (!isSettled(note)) this.#open += by;
    if (note.state === 'failed') this.#failed += by;
  }

  #conclude(): void {
    if (this.#failed > this.#parts.options.maxFailures) this.#over.resolve('failed');
    else if (this.#open === 0) this.#over.resolve('done');
  }

  #add(index: number): void {
    const entry = this.#parts.entries[index];
    if (entry !== undefined) this.#queue.add(keyOf(entry));
  }
}
