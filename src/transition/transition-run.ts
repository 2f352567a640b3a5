/**
 * Works through a plan: reconciles each VM when it, its instance or its record changes, until all entries are settled
 * or too many have failed. decide-entry.ts decides each step; this module performs it, with bounded concurrency.
 */
import type { JobReference } from '#api/machine-types/kinds.ts';
import type { TransitionOptions } from '#api/machine-types/options.ts';
import { isSettled, type EntryNote, type PlanEntry } from '#api/machine-types/plan.ts';
import { VIRTUAL_MACHINES, type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { keyOf } from '#client/object-key.ts';
import { isInapplicablePatch, ApiError } from '#kube/api-error.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { createLiveReader, type LiveReader } from '#runtime/live-reader.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';
import { decideEntry, type EntryDecision, type EntryStep } from '#transition/decide-entry.ts';
import type { TransitionNotes } from '#transition/transition-notes.ts';
import { buildRestartPatch, type VmJsonPatch } from '#transition/restart-request.ts';
import { RestartSlots } from '#transition/restart-slots.ts';
import { buildMarkPatch, buildTypePatch } from '#transition/type-patch.ts';

export interface Informers {
  readonly vms: Informer<VirtualMachine>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly records: Informer<VirtualMachineIdentity>;
}

interface RunParts extends Informers {
  readonly client: Pick<Client, 'get' | 'patch'>;
  readonly job: Pick<JobReference, 'name'>;
  readonly entries: readonly PlanEntry[];
  readonly notes: TransitionNotes;
  readonly options: Pick<TransitionOptions, 'restartNow' | 'maxRestarts' | 'maxFailures'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Enough for full group commits of the API server. */
const CONCURRENCY = 32;
const BACKOFF = { firstMs: 200, maxMs: 30_000 };

export class TransitionRun {
  readonly #parts: RunParts;
  readonly #queue: WorkQueue;
  readonly #indexOf: ReadonlyMap<string, number>;
  readonly #slots: RestartSlots;
  readonly #readLive: LiveReader;
  /** Restarts that this process has requested successfully. */
  readonly #restartRequested = new Set<number>();
  readonly #finished = Promise.withResolvers<'done' | 'failed'>();
  #open = 0;
  #failed = 0;
  #isFinished = false;

  constructor(parts: RunParts) {
    this.#parts = parts;
    const { clock, log, entries, notes, options } = parts;
    this.#indexOf = new Map(entries.map((entry, index) => [keyOf(entry), index]));
    const restarting = [...entries.keys()].filter((index) => notes.get(index).state === 'restarting');
    this.#readLive = createLiveReader(parts.client);
    this.#slots = new RestartSlots(options.maxRestarts, restarting);
    this.#queue = new WorkQueue({
      clock,
      concurrency: CONCURRENCY,
      backoff: BACKOFF,
      work: (key) => this.#reconcile(key),
      onError: (key, error, retry) => log.warn({ vm: key, err: error, ...retry }, 'Cannot update the VM; trying again'),
    });
  }

  /** Continues restarts that were waiting for their note to be written. */
  wake(indexes: Iterable<number>): void {
    for (const index of indexes) if (this.#slots.holds(index)) this.#add(index);
  }

  /**
   * Resolves when all entries are settled or too many have failed; rejects with the reason of the signal. Call once.
   */
  async run(): Promise<'done' | 'failed'> {
    const { entries, notes, vms, vmis, records, signal } = this.#parts;
    const onAbort = (): void => this.#finished.reject(signal.reason as Error);
    signal.addEventListener('abort', onAbort);
    if (signal.aborted) onAbort();
    for (const index of entries.keys()) this.#count(notes.get(index), 1);
    this.#conclude();
    const enqueue = (key: string): void => {
      if (this.#indexOf.has(key)) this.#queue.add(key);
    };
    // If an earlier process already had too many failures, no other VM is changed.
    const unsubscribes = this.#isFinished ? [] : [vms, vmis, records].map((informer) => informer.onChange(enqueue));
    if (!this.#isFinished) for (const index of entries.keys()) this.#add(index);
    try {
      return await this.#finished.promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
      for (const unsubscribe of unsubscribes) unsubscribe();
      await this.#queue.shutdown();
    }
  }

  async #reconcile(key: string): Promise<WorkResult | void> {
    const index = this.#indexOf.get(key);
    const entry = index === undefined ? undefined : this.#parts.entries[index];
    if (index === undefined || entry === undefined || this.#isFinished) return;
    try {
      return await this.#work(index, entry);
    } finally {
      for (const next of this.#slots.offerFreeSlots()) this.#add(next);
    }
  }

  async #work(index: number, entry: PlanEntry): Promise<WorkResult | void> {
    const { vms, vmis, notes } = this.#parts;
    const key = keyOf(entry);
    const before = notes.get(index);
    const [vm, vmi] = [vms.get(key), vmis.get(key)];
    const decision = this.#decide(index, entry, { vm, vmi });
    const { step, recheckAfterMs: afterMs } = decision;
    if (step?.do === 'restart') {
      if (!(await this.#restart(index, entry, decision))) return { retry: true };
    } else {
      // An instance that the cache does not show may have been created just before the patch.
      const settles = !isSettled(before) && isSettled(decision.note);
      if (settles && vm !== undefined && vmi === undefined && (await this.#awaitInstance(vm))) return { afterMs: 0 };
      if (step !== undefined && !(await this.#perform(index, entry, step))) return;
      this.#setNote(index, decision.note);
      if (decision.note.state !== 'restarting') this.#slots.release(index);
    }
    // Decide again after the step.
    return step !== undefined && step.do !== 'restart' && notes.get(index) !== before ? { afterMs: 0 } : { afterMs };
  }

  #decide(
    index: number,
    entry: PlanEntry,
    objects: { vm: Stored<VirtualMachine> | undefined; vmi: Stored<VirtualMachineInstance> | undefined },
  ): EntryDecision {
    const { notes, records, options, clock } = this.#parts;
    const { restartNow } = options;
    const isRestartRequested = this.#restartRequested.has(index);
    const record = records.get(keyOf(entry));
    return decideEntry({
      entry,
      note: notes.get(index),
      ...objects,
      record,
      restartNow,
      isRestartRequested,
      nowMs: clock.now(),
    });
  }

  /** Performs a step; resolves to false if it was refused permanently, which is noted. */
  async #perform(index: number, entry: PlanEntry, step: Exclude<EntryStep, { do: 'restart' }>): Promise<boolean> {
    const { vms, signal } = this.#parts;
    const patch: VmJsonPatch =
      step.do === 'patchType'
        ? { operations: buildTypePatch(entry, step.vm, this.#parts.job.name) }
        : { operations: buildMarkPatch(step.vm, step.mark), subresource: 'status' };
    try {
      const vm = await this.#patch(entry, patch);
      // The next decision must see the patched VM.
      await vms.waitForRevision(vm.metadata.resourceVersion, { signal });
      if (step.do === 'patchType') await this.#awaitInstance(vm);
      return true;
    } catch (error) {
      if (!isPermanentRefusal(error)) throw error;
      this.#fail(index, error);
      return false;
    }
  }

  /** Resolves to true if the VM has an instance, once the cache shows it. */
  async #awaitInstance(vm: Stored<VirtualMachine>): Promise<boolean> {
    const { vmis, signal } = this.#parts;
    if (runStrategyOf(vm) === 'Halted') return false;
    const { namespace = '', name } = vm.metadata;
    const vmi = await this.#readLive(VIRTUAL_MACHINE_INSTANCES, { namespace, name }, { signal });
    return vmi !== undefined && (await vmis.waitForRevision(vmi.metadata.resourceVersion, { signal }));
  }

  /** Requests a restart if possible; resolves to false if the VM has just changed. */
  async #restart(index: number, entry: PlanEntry, { note }: EntryDecision): Promise<boolean> {
    const { notes, log, signal } = this.#parts;
    if (!this.#slots.take(index)) {
      const { state, reason } = notes.get(index);
      if (state !== 'updated' || reason !== undefined) this.#setNote(index, { ...note, state: 'updated' });
      return true;
    }
    this.#setNote(index, note);
    if (!notes.isWritten(index)) return true;
    // An earlier process of this Job may have requested the restart, so the server is read instead of the cache.
    const vm = await this.#readLive(VIRTUAL_MACHINES, entry, { signal });
    const vmi = await this.#readLive(VIRTUAL_MACHINE_INSTANCES, entry, { signal });
    const { step } = this.#decide(index, entry, { vm, vmi });
    if (step?.do !== 'restart' || this.#isFinished) return true;
    try {
      await this.#patch(entry, buildRestartPatch(step.verb, step.vm, step.old));
      this.#restartRequested.add(index);
      log.info({ vm: keyOf(entry), verb: step.verb }, 'requested the restart');
      return true;
    } catch (error) {
      if (isInapplicablePatch(error)) return false;
      if (!isPermanentRefusal(error)) throw error;
      this.#fail(index, error);
      return true;
    }
  }

  async #patch({ namespace, name }: PlanEntry, { operations, subresource }: VmJsonPatch) {
    const { client, signal } = this.#parts;
    const options = { signal, ...(subresource !== undefined && { subresource }) };
    return await client.patch(VIRTUAL_MACHINES, { namespace, name }, { type: 'json', body: operations }, options);
  }

  #fail(index: number, { message }: ApiError): void {
    const { vmiUid } = this.#parts.notes.get(index);
    this.#slots.release(index);
    const at = timestamp(this.#parts.clock.now());
    this.#setNote(index, { state: 'failed', reason: message, at, ...(vmiUid !== undefined && { vmiUid }) });
  }

  #setNote(index: number, note: EntryNote): void {
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
    this.#isFinished = true;
    this.#finished.resolve(failed ? 'failed' : 'done');
  }

  #add(index: number): void {
    const entry = this.#parts.entries[index];
    if (entry !== undefined) this.#queue.add(keyOf(entry));
  }
}

/** Status codes that a retry does not change. */
const PERMANENT_CODES: ReadonlySet<number> = new Set([400, 403, 422]);
/** A message of the authorizer, not of admission. A missing right is temporary: the operator restores its roles. */
const MISSING_RIGHT = / is forbidden: User ".*" cannot /s;

/** Reports whether the error ends the work on a VM, because a retry would get the same answer. */
export function isPermanentRefusal(error: unknown): error is ApiError {
  if (!(error instanceof ApiError) || !PERMANENT_CODES.has(error.code) || isInapplicablePatch(error)) return false;
  return error.code !== 403 || !MISSING_RIGHT.test(error.message);
}
