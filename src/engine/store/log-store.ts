/**
 * The store on top of a journal. All reads come from memory, and memory changes only after the journal is durable.
 * Each commit, in revision order: durable → index and history → watchers → acknowledged.
 *
 * Collections, history, watchers and the write queue each own their part; this class keeps them consistent.
 */
import { Collection } from '#engine/store/collection.ts';
import type { History } from '#engine/store/history.ts';
import type { Journal, LogRecord } from '#engine/store/journal.ts';
import { applyRecord, Loader } from '#engine/store/loader.ts';
import { RevisionWaiters } from '#engine/store/revision-waiters.ts';
import {
  RevisionConflictError,
  RevisionGoneError,
  StoreFullError,
  StoreOverloadedError,
  StoreUnavailableError,
} from '#engine/store/store.ts';
import type { Entry, StoreListing, ListRange, Store, WatchListener, WatchRange, Write } from '#engine/store/store.ts';
import { notify, selectEvents, Watchers } from '#engine/store/watchers.ts';
import { WriteQueue } from '#engine/store/write-queue.ts';

export interface LogStoreOptions {
  readonly maxHistoryEvents?: number;
  /** Limit for the superseded and deleted versions that are kept for watches and lists of past revisions. */
  readonly maxHistoryBytes?: number;
  readonly maxOpsInFlight?: number;
  readonly maxBytesInFlight?: number;
}

const MIB = 1024 * 1024;
const DEFAULTS = {
  maxHistoryEvents: 32_768,
  maxHistoryBytes: 64 * MIB,
  maxOpsInFlight: 4096,
  maxBytesInFlight: 64 * MIB,
} as const satisfies LogStoreOptions;

export class LogStore implements Store {
  readonly #journal: Journal;
  readonly #collections: Map<string, Collection>;
  readonly #history: History;
  readonly #watchers = new Watchers();
  readonly #waiters = new RevisionWaiters();
  readonly #queue: WriteQueue;
  #revision: number;
  #removable: number[] = [];
  #compaction: Promise<void> | undefined;
  #closed: Promise<void> | undefined;

  /** Reads the whole journal. Rejects if it is damaged or cannot be accessed. */
  static async open(journal: Journal, options: LogStoreOptions = {}): Promise<LogStore> {
    try {
      const { compactedRevision } = await journal.open();
      const loaded = new Loader(journal.name, compactedRevision, {
        maxEvents: options.maxHistoryEvents ?? DEFAULTS.maxHistoryEvents,
        maxBytes: options.maxHistoryBytes ?? DEFAULTS.maxHistoryBytes,
      });
      for await (const records of journal.records()) loaded.addRecords(records);
      return new LogStore(journal, loaded, options);
    } catch (error) {
      await journal.close().catch(() => {});
      throw error;
    }
  }

  private constructor(journal: Journal, loaded: Loader, options: LogStoreOptions) {
    this.#journal = journal;
    this.#collections = loaded.collections;
    this.#history = loaded.history;
    this.#revision = loaded.revision;
    this.#queue = new WriteQueue(journal, {
      limits: {
        maxOps: options.maxOpsInFlight ?? DEFAULTS.maxOpsInFlight,
        maxBytes: options.maxBytesInFlight ?? DEFAULTS.maxBytesInFlight,
      },
      lastRevision: loaded.revision,
      committed: (batch) => this.#commit(batch),
    });
    this.#compact();
  }

  get revision(): number {
    return this.#revision;
  }

  get compactedRevision(): number {
    return this.#history.compactedRevision;
  }

  get fault(): Error | undefined {
    return this.#queue.fault;
  }

  get(collection: string, id: string): Entry | undefined {
    return this.#collections.get(collection)?.get(id);
  }

  latest(collection: string, id: string): Entry | undefined {
    const inFlight = this.#queue.latest(collection, id);
    if (!inFlight) return this.get(collection, id);
    return inFlight.type === 'put' ? inFlight.entry : undefined;
  }

  list(collection: string, range: ListRange = {}): StoreListing {
    const { atRevision = this.#revision } = range;
    if (atRevision < this.compactedRevision) throw new RevisionGoneError(atRevision, this.compactedRevision);
    if (atRevision > this.#revision) {
      throw new RangeError(`Cannot list at revision ${atRevision}: the newest revision is ${this.#revision}`);
    }
    const now = this.#collections.get(collection) ?? EMPTY;
    const page =
      atRevision === this.#revision
        ? now.list(range)
        : now.listBefore(this.#history.undoTo(collection, atRevision), range);
    return { ...page, revision: atRevision };
  }

  listLatest(collection: string, prefix: string): readonly Entry[] {
    const { entries } = (this.#collections.get(collection) ?? EMPTY).list({ prefix });
    const inFlight = this.#queue.inFlight(collection);
    if (inFlight.size === 0) return entries;
    const latest = entries.filter(({ id }) => !inFlight.has(id));
    for (const { type, entry } of inFlight.values()) {
      if (type === 'put' && entry.id.startsWith(prefix)) latest.push(entry);
    }
    return latest;
  }

  count(collection: string): number {
    return this.#collections.get(collection)?.size ?? 0;
  }

  put(write: Write): Promise<Entry> {
    return this.#write('put', write);
  }

  delete(write: Write): Promise<Entry> {
    return this.#write('delete', write);
  }

  watch(range: WatchRange, listener: WatchListener): () => void {
    const { collection, prefix = '', since } = range;
    if (since < this.compactedRevision) throw new RevisionGoneError(since, this.compactedRevision);
    const replay = selectEvents(this.#history.since(collection, since), prefix, since);
    // Live events start after the events in history, even if a listener calls this during a commit.
    const end = this.#watchers.add({ collection, prefix, since: Math.max(since, this.#revision) }, listener);
    if (replay.length > 0) notify(listener, replay);
    return end;
  }

  reached(revision: number, { signal }: { signal: AbortSignal }): Promise<boolean> {
    if (revision <= this.#revision) return Promise.resolve(true);
    if (this.#closed) return Promise.resolve(false);
    return this.#waiters.wait(revision, signal);
  }

  settled(entry: Entry): Promise<boolean> {
    return this.#queue.settled(entry);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  #write(type: LogRecord['type'], write: Write): Promise<Entry> {
    if (this.#closed) return Promise.reject(new StoreUnavailableError('Cannot write: the store is closed'));
    if (this.#queue.full)
      return Promise.reject(new StoreOverloadedError('Cannot write: too many writes are in flight'));
    if (this.#journal.isSpaceScarce && type === 'put' && write.isUrgent !== true)
      return Promise.reject(
        new StoreFullError(
          `Cannot write to ${this.#journal.name}: its disk is almost full; delete objects or free space`,
        ),
      );
    const current = this.latest(write.collection, write.id);
    const expected = (current?.revision ?? 0) === write.expected;
    if (!expected || (type === 'delete' && !current)) return Promise.reject(new RevisionConflictError(current));
    return this.#queue.submit(type, write);
  }

  #commit(batch: readonly LogRecord[]): void {
    const events = batch.map((record) => {
      const event = applyRecord(this.#collections, record);
      this.#history.push(event);
      return event;
    });
    this.#revision = events[events.length - 1]!.entry.revision;
    this.#compact();
    this.#watchers.publish(events);
    this.#waiters.announce(this.#revision);
  }

  /**
   * Drops history from memory at once. The journal may do it later or fail; records that it keeps too long are passed
   * again the next time.
   */
  #compact(): void {
    const cut = this.#history.cut();
    if (!cut) return;
    for (const revision of cut.removable) this.#removable.push(revision);
    this.#compaction ??= this.#compactJournal().finally(() => (this.#compaction = undefined));
  }

  async #compactJournal(): Promise<void> {
    const removable = this.#removable;
    this.#removable = [];
    try {
      await this.#journal.compact(this.compactedRevision, removable);
    } catch {
      this.#removable = removable.concat(this.#removable);
    }
  }

  async #close(): Promise<void> {
    await this.#queue.drain();
    await this.#compaction;
    this.#watchers.clear();
    this.#waiters.clear();
    await this.#journal.close();
  }
}

const EMPTY = new Collection();
