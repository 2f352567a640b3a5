/**
 * Writes on their way to the journal. Assigns revisions, shows writes in flight to the next write, and groups commits:
 * one batch is at the journal while the next one is collected.
 *
 *   submit ─► collecting ─► at the journal ─► committed ─► acknowledged
 *                 └──────────────┴──── the journal fails ─► all rejected, their revisions are never reused
 */
import { invariant } from '#lib/invariant.ts';
import type { Journal, LogRecord } from '#engine/store/journal.ts';
import type { Entry, Write } from '#engine/store/store.ts';

interface QueueLimits {
  readonly maxOps: number;
  /** A single write may exceed this limit: it bounds the sum, not the size of an object. */
  readonly maxBytes: number;
}

interface Pending extends LogRecord {
  resolve(entry: Entry): void;
  reject(error: Error): void;
}

const NOTHING_IN_FLIGHT: ReadonlyMap<string, LogRecord> = new Map();

export class WriteQueue {
  readonly #journal: Pick<Journal, 'append'>;
  readonly #limits: QueueLimits;
  readonly #committed: (batch: readonly LogRecord[]) => void;
  /** The newest write in flight of each id. */
  readonly #latest = new Map<string, Map<string, Pending>>();
  /** The outcome of each write in flight; true = durable. */
  readonly #outcomes = new Map<Entry, Promise<boolean>>();
  #lastRevision: number;
  #collecting: Pending[] = [];
  #atJournal: readonly Pending[] = [];
  #bytesInFlight = 0;
  #scheduled = false;
  #fault: Error | undefined;
  #drained: (() => void)[] = [];

  /** `committed` is called for each durable batch, in order, before its writes are acknowledged. */
  constructor(
    journal: Pick<Journal, 'append'>,
    options: { limits: QueueLimits; lastRevision: number; committed: (batch: readonly LogRecord[]) => void },
  ) {
    this.#journal = journal;
    this.#limits = options.limits;
    this.#lastRevision = options.lastRevision;
    this.#committed = options.committed;
  }

  /** The error of the last batch; undefined after a batch succeeded. */
  get fault(): Error | undefined {
    return this.#fault;
  }

  get full(): boolean {
    return this.#opsInFlight >= this.#limits.maxOps || this.#bytesInFlight >= this.#limits.maxBytes;
  }

  /** Returns the write in flight for an id, if any. */
  latest(collection: string, id: string): LogRecord | undefined {
    return this.#latest.get(collection)?.get(id);
  }

  /** Returns the newest write in flight of each id of a collection. */
  inFlight(collection: string): ReadonlyMap<string, LogRecord> {
    return this.#latest.get(collection) ?? NOTHING_IN_FLIGHT;
  }

  /** The caller must have checked `full` and the expected revision. */
  submit(type: LogRecord['type'], write: Write): Promise<Entry> {
    const { collection, id } = write;
    const revision = this.#lastRevision + 1;
    let bytes: Buffer;
    try {
      bytes = ownBytes(write.encode(revision));
    } catch (error) {
      return Promise.reject(error);
    }
    invariant(this.#lastRevision === revision - 1, 'encode must not write');
    this.#lastRevision = revision;
    const entry: Entry = { collection, id, revision, bytes };
    const isUrgent = type === 'delete' || write.isUrgent === true;
    const written = new Promise<Entry>((resolve, reject) => this.#enqueue({ type, entry, isUrgent, resolve, reject }));
    const outcome = written.then(
      () => true,
      () => false,
    );
    this.#outcomes.set(entry, outcome);
    void outcome.then(() => this.#outcomes.delete(entry));
    return written;
  }

  /** Entries that are not in flight were read from memory, which holds only durable state. */
  settled(entry: Entry): Promise<boolean> {
    return this.#outcomes.get(entry) ?? Promise.resolve(true);
  }

  /** Resolves when nothing is in flight. */
  drain(): Promise<void> {
    if (this.#opsInFlight === 0) return Promise.resolve();
    return new Promise((resolve) => this.#drained.push(resolve));
  }

  get #opsInFlight(): number {
    return this.#collecting.length + this.#atJournal.length;
  }

  #enqueue(pending: Pending): void {
    const { collection, id, bytes } = pending.entry;
    this.#collecting.push(pending);
    this.#bytesInFlight += bytes.length;
    let ids = this.#latest.get(collection);
    if (!ids) this.#latest.set(collection, (ids = new Map()));
    ids.set(id, pending);
    this.#schedule();
  }

  /** Waits for the end of this turn of the event loop, so that simultaneous writes are committed together. */
  #schedule(): void {
    if (this.#scheduled || this.#atJournal.length > 0) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      void this.#flush();
    });
  }

  async #flush(): Promise<void> {
    const batch = this.#collecting;
    this.#collecting = [];
    this.#atJournal = batch;
    try {
      await this.#journal.append(batch);
    } catch (error) {
      this.#fail(error as Error);
      return;
    }
    this.#succeed(batch);
  }

  #succeed(batch: readonly Pending[]): void {
    this.#fault = undefined;
    this.#atJournal = [];
    for (const pending of batch) {
      const { collection, id, bytes } = pending.entry;
      this.#bytesInFlight -= bytes.length;
      const ids = this.#latest.get(collection);
      if (ids?.get(id) === pending) ids.delete(id);
    }
    this.#committed(batch);
    for (const pending of batch) pending.resolve(pending.entry);
    if (this.#collecting.length > 0) this.#schedule();
    this.#settle();
  }

  #fail(error: Error): void {
    this.#fault = error;
    const failed = [...this.#atJournal, ...this.#collecting];
    this.#atJournal = [];
    this.#collecting = [];
    this.#bytesInFlight = 0;
    this.#latest.clear();
    for (const pending of failed) pending.reject(error);
    this.#settle();
  }

  #settle(): void {
    if (this.#opsInFlight > 0) return;
    this.#latest.clear();
    for (const resolve of this.#drained.splice(0)) resolve();
  }
}

/**
 * Copies small buffers. Node allocates them as slices of a shared pool, and one kept slice would keep the whole pool
 * alive.
 */
function ownBytes(bytes: Buffer): Buffer {
  if (bytes.buffer.byteLength === bytes.length) return bytes;
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}
