/**
 * Works off a plan: each VM whenever something happens to it, its instance or its record, until all entries are settled
 * or too many have failed. What is to be done is decide-entry.ts's; here it is done, in bounded numbers.
 */
import type { JobReference } from '#api/machine-types/kinds.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { isSettled, type EntryNote, type PlanEntry } from '#api/machine-types/plan.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { runStrategyOf } from '#api/can.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { isUnfitPatch, type ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { liveLook, type LiveLook } from '#runtime/live-look.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';
import { decideEntry, type Decision, type Step } from '#transition/decide-entry.ts';
import type { ProgressNotes } from '#transition/progress-notes.ts';
import { isRefusal } from '#transition/refusal.ts';
import { restartRequest, type VmPatch } from '#transition/restart-request.ts';
import { RestartSlots } from '#transition/restart-slots.ts';
import { markPatch, typePatch } from '#transition/type-patch.ts';

export interface Informers {
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly records: Informer<VirtualMachineIdentity>;
}

export interface RunParts extends Informers {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly job: Pick<JobReference, 'name'>;
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

export class TransitionRun {
  readonly #parts: RunParts;
  readonly #queue: WorkQueue;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #slots: RestartSlots;
  readonly #look: LiveLook;
  /** Restarts that this process has asked for, with an answer. */
  readonly #asked = new Set<number>();
  readonly #over = Promise.withResolvers<'done' | 'failed'>();
  #open = 0;
  #failed = 0;
  #isOver = false;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { clock, log, entries, notes, options } = parts;
    this.#indexOf = new Map(entries.map((entry, index) => [keyOf(entry), index]));
    const restarting = [...entries.keys()].filter((index) => notes.get(index).state === 'restarting');
    this.#look = liveLook(parts.client);
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
    this.#conclude();
    const look = (key: string): void => {
      if (this.#indexOf.has(key)) this.#queue.add(key);
    };
    // Whoever comes after too many failures touches nobody else.
    const ends = this.#isOver ? [] : [vms, vmis, records].map((informer) => informer.onChange(look));
    if (!this.#isOver) for (const index of entries.keys()) this.#add(index);
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
    if (index === undefined || entry === undefined || this.#isOver) return;
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
    const [vm, vmi] = [vms.get(key), vmis.get(key)];
    const decision = this.#decide(index, entry, { vm, vmi });
    const { step, againAfterMs: afterMs } = decision;
    if (step?.do === 'restart') {
      if (!(await this.#restart(index, entry, decision))) return { retry: true };
    } else {
      // What is not seen to run may have begun a moment before its patch.
      const ends = !isSettled(before) && isSettled(decision.note);
      if (ends && vm !== undefined && vmi === undefined && (await this.#catchUp(vm))) return { afterMs: 0 };
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
    const { vms, signal } = this.#parts;
    const patch: VmPatch =
      step.do === 'patchType'
        ? { operations: typePatch(entry, step.vm, this.#parts.job.name) }
        : { operations: markPatch(step.vm, step.mark), subresource: 'status' };
    try {
      const vm = await this.#patch(entry, patch);
      // The next decision must not be made on what was before.
      await vms.reached(vm.metadata.resourceVersion, { signal });
      if (step.do === 'patchType') await this.#catchUp(vm);
      return true;
    } catch (error) {
      if (!isRefusal(error)) throw error;
      this.#fail(index, error);
      return false;
    }
  }

  /** Whether there is an instance; it is in the cache then. */
  async #catchUp(vm: Stored<VirtualMachine>): Promise<boolean> {
    const { vmis, signal } = this.#parts;
    if (runStrategyOf(vm) === 'Halted') return false;
    const { namespace = '', name } = vm.metadata;
    const vmi = await this.#look(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, { signal });
    return vmi !== undefined && (await vmis.reached(vmi.metadata.resourceVersion, { signal }));
  }

  /** False where the VM is not any more as it was a moment before. */
  async #restart(index: number, entry: PlanEntry, { note }: Decision): Promise<boolean> {
    const { notes, log, signal } = this.#parts;
    if (!this.#slots.take(index)) {
      const { state, reason } = notes.get(index);
      if (state !== 'updated' || reason !== undefined) this.#note(index, { ...note, state: 'updated' });
      return true;
    }
    this.#note(index, note);
    if (!notes.isWritten(index)) return true;
    // One that was killed may have asked before us: what the server says counts, not what we have heard of it.
    const vm = await this.#look(VIRTUAL_MACHINES, entry, { signal });
    const vmi = await this.#look(VIRTUAL_MACHINE_INSTANCES, entry, { signal });
    const { step } = this.#decide(index, entry, { vm, vmi });
    if (step?.do !== 'restart' || this.#isOver) return true;
    try {
      await this.#patch(entry, restartRequest(step.verb, step.vm, step.old));
      this.#asked.add(index);
      log.info({ vm: keyOf(entry), verb: step.verb }, 'asked for the restart');
      return true;
    } catch (error) {
      if (isUnfitPatch(error)) return false;
      if (!isRefusal(error)) throw error;
      this.#fail(index, error);
      return true;
    }
  }

  async #patch({ namespace, name }: PlanEntry, { operations, subresource }: VmPatch) {
    const { client, signal } = this.#parts;
    const options = { signal, ...(subresource !== undefined && { subresource }) };
    return await client.patch(VIRTUAL_MACHINES, { namespace, name }, { type: 'json', body: operations }, options);
  }

  #fail(index: number, { message }: ApiError): void {
    const { vmiUid } = this.#parts.notes.get(index);
    this.#slots.release(index);
    const at = timestamp(this.#parts.clock.now());
    this.#note(index, { state: 'failed', reason: message, at, ...(vmiUid !== undefined && { vmiUid }) });
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
    const failed = this.#failed > this.#parts.options.maxFailures;
    if (!failed && this.#open > 0) return;
    this.#isOver = true;
    this.#over.resolve(failed ? 'failed' : 'done');
  }

  #add(index: number): void {
    const entry = this.#parts.entries[index];
    if (entry !== undefined) this.#queue.add(keyOf(entry));
  }
}
