/**
 * The notes on the entries of a plan, in memory at once and in ConfigMaps at most once a second. An action whose note
 * must survive the process, such as a restart, waits until `isWritten`; `onWritten` reports each write.
 */
import type { JobReference } from '#api/machine-types/kinds.ts';
import { CONFIG_MAPS } from '#kube/core-kinds.ts';
import { chunkOf, buildProgressConfigMap, progressName, type EntryNote } from '#api/machine-types/plan.ts';
import { delay } from '#client/abort.ts';
import type { Client } from '#client/client.ts';
import { isApiError } from '#kube/api-error.ts';
import { backoffMs } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

interface TransitionNotesParts {
  readonly client: Pick<Client, 'create' | 'patch'>;
  readonly job: JobReference;
  readonly clock: Clock;
  readonly log: Log;
  /** The notes that were written last. */
  readonly notes: ReadonlyMap<number, EntryNote>;
  /** Names of the existing ConfigMaps. */
  readonly names: ReadonlySet<string>;
  readonly onWritten: (indexes: ReadonlySet<number>) => void;
}

export const WRITE_INTERVAL_MS = 1000;
const BACKOFF = { firstMs: 500, maxMs: 30_000 };
const PENDING: EntryNote = { state: 'pending' };

export class TransitionNotes {
  readonly #parts: TransitionNotesParts;
  readonly #notes: Map<number, EntryNote>;
  readonly #names: Set<string>;
  #unwritten = new Set<number>();
  #inFlight: ReadonlySet<number> = new Set();
  #wake: () => void = () => {};
  /** Ends the pause between two writes. */
  #skipPause: () => void = () => {};
  readonly #waiters = new Set<() => void>();

  constructor(parts: TransitionNotesParts) {
    this.#parts = parts;
    this.#notes = new Map(parts.notes);
    this.#names = new Set(parts.names);
  }

  get(index: number): EntryNote {
    return this.#notes.get(index) ?? PENDING;
  }

  set(index: number, note: EntryNote): void {
    this.#notes.set(index, note);
    this.#unwritten.add(index);
    this.#wake();
  }

  isWritten(index: number): boolean {
    return !this.#unwritten.has(index) && !this.#inFlight.has(index);
  }

  /** Resolves when all notes are written, without the pause. Does not resolve if `run` has ended. */
  allWritten(): Promise<void> {
    if (this.#isClean()) return Promise.resolve();
    return new Promise((resolve) => {
      this.#waiters.add(resolve);
      this.#skipPause();
    });
  }

  /** Writes until the signal aborts; never rejects. */
  async run({ signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { clock, log } = this.#parts;
    signal.addEventListener('abort', () => this.#wake());
    let failures = 0;
    while (!signal.aborted) {
      if (this.#unwritten.size === 0) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      try {
        await this.#round(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        log.warn({ err: error, failures }, 'Cannot write the progress of the Job; trying again');
      }
      if (failures > 0) await delay(clock, backoffMs(failures, BACKOFF), { signal });
      else if (this.#waiters.size === 0) await this.#pause(signal);
    }
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const skipped = Promise.withResolvers<void>();
    this.#skipPause = skipped.resolve;
    await Promise.race([delay(this.#parts.clock, WRITE_INTERVAL_MS, { signal }), skipped.promise]);
  }

  async #round(signal: AbortSignal): Promise<void> {
    const taken = this.#unwritten;
    this.#unwritten = new Set();
    this.#inFlight = taken;
    try {
      for (const chunk of new Set([...taken].map(chunkOf))) await this.#write(chunk, signal);
    } catch (error) {
      for (const index of taken) this.#unwritten.add(index);
      throw error;
    } finally {
      this.#inFlight = new Set();
    }
    this.#parts.onWritten(taken);
    if (!this.#isClean()) return;
    for (const resolve of this.#waiters) resolve();
    this.#waiters.clear();
  }

  async #write(chunk: number, signal: AbortSignal): Promise<void> {
    const { client, job } = this.#parts;
    const name = progressName(job, chunk);
    const part = buildProgressConfigMap(job, chunk, this.#notes);
    if (!this.#names.has(name)) {
      try {
        await client.create(CONFIG_MAPS, part, { signal });
        this.#names.add(name);
        return;
      } catch (error) {
        if (!isApiError(error, 'AlreadyExists')) throw error;
        this.#names.add(name);
      }
    }
    const { labels, ownerReferences } = part.metadata;
    const body = { metadata: { labels, ownerReferences }, data: part.data };
    try {
      await client.patch(CONFIG_MAPS, { namespace: job.namespace, name }, { type: 'merge', body }, { signal });
    } catch (error) {
      // The ConfigMap was deleted; the next write creates it again.
      if (isApiError(error, 'NotFound')) this.#names.delete(name);
      throw error;
    }
  }

  #isClean(): boolean {
    return this.#unwritten.size === 0 && this.#inFlight.size === 0;
  }
}
