/**
 * The store: one revision counter, an append-only log of revisions, and reads from memory.
 *
 *   put/delete ──► in flight (seen by `latest` only) ──► durable (seen by get, list and watch) ──► acknowledged
 *
 * A write gets its revision when it is submitted, so that the stored bytes can carry it as resourceVersion.
 * Reads never see data that is not on disk; writes build on writes in flight, so that they need not wait for them.
 * When a commit fails, every write in flight fails with it, and the next one builds on durable state again.
 */

/** A stored version of one object. Immutable, including its bytes. */
export interface Entry {
  /** Name of the collection: `pods`, `gadgets.golden.local`. */
  readonly collection: string;
  /** `namespace/name`, or `name` for cluster-scoped kinds. */
  readonly id: string;
  readonly revision: number;
  /** The object as it is served: JSON with this revision as its resourceVersion. */
  readonly bytes: Buffer;
}

export interface StoreEvent {
  readonly type: 'put' | 'delete';
  /** For a delete: the last state of the object, with the delete's own revision. */
  readonly entry: Entry;
  /** The entry that `entry` replaced; undefined if the object was created. */
  readonly previous: Entry | undefined;
}

export interface Write {
  readonly collection: string;
  readonly id: string;
  /** The revision that must be the latest; 0 = the entry must not exist. */
  readonly expected: number;
  /** True if the write is part of a deletion, or too important to fail: it is accepted while space is scarce. */
  readonly isUrgent?: boolean;
  /** Encodes the bytes once the revision is known. Called once, synchronously; an exception fails only this write. */
  encode(revision: number): Buffer;
}

export interface ListRange {
  /** Selects ids that start with it: `namespace/`. */
  readonly prefix?: string;
  /** Selects ids after this one, to continue a list. */
  readonly after?: string;
  readonly limit?: number;
  /** Lists a past state; must not be before compactedRevision nor after revision. */
  readonly atRevision?: number;
}

export interface StoreListing {
  readonly entries: readonly Entry[];
  readonly revision: number;
  /** Number of entries after the limit. */
  readonly remaining: number;
}

export interface WatchRange {
  readonly collection: string;
  readonly prefix?: string;
  /** Events after this revision are replayed at once; live ones follow without a gap. */
  readonly since: number;
}

/**
 * Receives events in order, in batches: one call for each commit with events in its range. Must not throw. Watchers of
 * the same range get the same array, so that they can share derived values.
 */
export type WatchListener = (events: readonly StoreEvent[]) => void;

export interface Store {
  /** The newest durable revision. */
  readonly revision: number;
  /** The oldest revision that watches and lists can start from. */
  readonly compactedRevision: number;
  /** Returns the durable version. */
  get(collection: string, id: string): Entry | undefined;
  /** Returns the latest version, durable or in flight, which a write builds on. */
  latest(collection: string, id: string): Entry | undefined;
  /** Lists entries in id order. Throws RevisionGoneError for a revision that was compacted. */
  list(collection: string, range?: ListRange): StoreListing;
  /** Lists the latest versions, durable or in flight, of the ids that start with `prefix`, in no order. */
  listLatest(collection: string, prefix: string): readonly Entry[];
  count(collection: string): number;
  /**
   * Resolves when the write is durable. Rejects with RevisionConflictError, StoreUnavailableError, StoreOverloadedError
   * or StoreFullError.
   */
  put(write: Write): Promise<Entry>;
  /** Like put; `encode` returns the object's last state. */
  delete(write: Write): Promise<Entry>;
  /**
   * Calls the listener with the replay before it returns. Returns a function that ends the watch. Throws
   * RevisionGoneError.
   */
  watch(range: WatchRange, listener: WatchListener): () => void;
  /** Resolves to true when `revision` is durable, or to false when the signal aborts. */
  reached(revision: number, options: { signal: AbortSignal }): Promise<boolean>;
  /** Resolves to true when this version is durable, or to false when its commit failed. */
  settled(entry: Entry): Promise<boolean>;
  /** The error of current writes; undefined while they succeed. */
  readonly fault: Error | undefined;
  /** Waits for writes in flight; rejects further writes. */
  close(): Promise<void>;
}

/** Another write came first. `current` is the latest entry, including writes in flight. */
export class RevisionConflictError extends Error {
  override name = 'RevisionConflictError';
  readonly current: Entry | undefined;
  constructor(current: Entry | undefined) {
    super(current ? `the latest revision is ${current.revision}` : 'the entry does not exist');
    this.current = current;
  }
}

export class RevisionGoneError extends Error {
  override name = 'RevisionGoneError';
  readonly compactedRevision: number;
  constructor(revision: number, compactedRevision: number) {
    super(`revision ${revision} was compacted; the oldest kept revision is ${compactedRevision}`);
    this.compactedRevision = compactedRevision;
  }
}

/** The write is not durable, or its outcome is unknown: the disk is full or failing. Reads still work. */
export class StoreUnavailableError extends Error {
  override name = 'StoreUnavailableError';
}

/** The disk is full or almost full: only deletions and urgent writes are accepted. Nothing was written. */
export class StoreFullError extends StoreUnavailableError {
  override name = 'StoreFullError';
}

/** Too many writes are in flight; nothing was written. */
export class StoreOverloadedError extends Error {
  override name = 'StoreOverloadedError';
}

/** The file is damaged; nothing was served from it. */
export class StoreDamagedError extends Error {
  override name = 'StoreDamagedError';
}
