/**
 * The store: one revision counter, an append-only log of revisions, every read from memory.
 *
 *   put/delete ──► in flight (seen by `latest` only) ──► durable (seen by get, list and watch) ──► acknowledged
 *
 * A write takes its revision when it is submitted, so that the stored bytes can carry it as resourceVersion.
 * Reads never see what is not on disk; writes build on what is in flight, so that they need not wait for it.
 * When a commit fails, every write in flight fails with it and the next one builds on durable state again.
 */

/** A stored version of one object. Immutable, and so are its bytes. */
export interface Entry {
  /** `pods`, `gadgets.golden.local`. */
  readonly collection: string;
  /** `namespace/name`, or `name` where the kind has no namespace. */
  readonly id: string;
  readonly revision: number;
  /** The object as it is served: JSON with this revision as its resourceVersion. */
  readonly bytes: Buffer;
}

export interface StoreEvent {
  readonly type: 'put' | 'delete';
  /** For a delete: the last state of the object, with the delete's own revision. */
  readonly entry: Entry;
  /** What `entry` replaced; absent when it was created. */
  readonly previous: Entry | undefined;
}

export interface Write {
  readonly collection: string;
  readonly id: string;
  /** The revision that must be the latest now; 0 = must not exist. */
  readonly expected: number;
  /** Makes the bytes once the revision is known. Called once, synchronously; what it throws fails the write alone. */
  encode(revision: number): Buffer;
}

export interface ListRange {
  /** Only ids that start with it: `namespace/`. */
  readonly prefix?: string;
  /** Only ids after this one: where a continued list goes on. */
  readonly after?: string;
  readonly limit?: number;
  /** Looks at the store as it was; must not be older than compactedRevision nor newer than revision. */
  readonly atRevision?: number;
}

export interface Listing {
  readonly entries: readonly Entry[];
  readonly revision: number;
  /** How many more would match behind the limit. */
  readonly remaining: number;
}

export interface WatchRange {
  readonly collection: string;
  readonly prefix?: string;
  /** Events after this revision are replayed at once, then live ones follow without a gap. */
  readonly since: number;
}

/**
 * Gets events in order, in batches: one call for each commit that touched its range. Must not throw. Watchers of one
 * range get the same array, so that they can share what they make of it.
 */
export type WatchListener = (events: readonly StoreEvent[]) => void;

export interface Store {
  /** The newest durable revision. */
  readonly revision: number;
  /** Watches and lists from before it are gone. */
  readonly compactedRevision: number;
  /** Durable state. */
  get(collection: string, id: string): Entry | undefined;
  /** Durable or still in flight: what a write builds on. */
  latest(collection: string, id: string): Entry | undefined;
  /** In id order. Throws RevisionGoneError for a revision that was compacted. */
  list(collection: string, range?: ListRange): Listing;
  count(collection: string): number;
  /** Resolves when durable. Rejects with RevisionConflictError, StoreUnavailableError or StoreOverloadedError. */
  put(write: Write): Promise<Entry>;
  /** Like put; `encode` gives the object's last state. */
  delete(write: Write): Promise<Entry>;
  /** Throws RevisionGoneError. The listener gets the replay before this returns. The result ends the watch. */
  watch(range: WatchRange, listener: WatchListener): () => void;
  /** Resolves when `revision` is durable or the signal aborts (then false). */
  reached(revision: number, options: { signal: AbortSignal }): Promise<boolean>;
  /** Resolves when this very version is durable: true, or when its commit failed: false. */
  settled(entry: Entry): Promise<boolean>;
  /** Why writes fail right now; undefined while they work. */
  readonly fault: Error | undefined;
  /** Waits for what is in flight; then nothing more is taken. */
  close(): Promise<void>;
}

/** Another write came first: `current` is what is there now, in flight included. */
export class RevisionConflictError extends Error {
  override name = 'RevisionConflictError';
  readonly current: Entry | undefined;
  constructor(current: Entry | undefined) {
    super(current ? `the latest revision is ${current.revision}` : 'there is no such entry');
    this.current = current;
  }
}

export class RevisionGoneError extends Error {
  override name = 'RevisionGoneError';
  readonly compactedRevision: number;
  constructor(revision: number, compactedRevision: number) {
    super(`revision ${revision} is gone; the oldest kept is ${compactedRevision}`);
    this.compactedRevision = compactedRevision;
  }
}

/** Not written, or not known to be written: the disk is full or fails. Reads go on. */
export class StoreUnavailableError extends Error {
  override name = 'StoreUnavailableError';
}

/** Too much is in flight; nothing was written. */
export class StoreOverloadedError extends Error {
  override name = 'StoreOverloadedError';
}

/** The file cannot be trusted; nothing of it was served. */
export class StoreDamagedError extends Error {
  override name = 'StoreDamagedError';
}
