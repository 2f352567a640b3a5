/**
 * An informer: the objects of one kind, kept as the server has them, and a notice of each state that it saw.
 *
 *                ┌──────────── 410, or the server's history went back ───────────┐
 *                ▼                                                               │
 *   start ──► list ──► watch ──ended, reset, restart──► look at the revision ────┴──► watch from the last one seen
 *
 * No state is seen twice and none is skipped that the server still knows; only what happened before a 410 is taken
 * as one step. For a key, the object shown is always newer than the one before, unless the server itself was set
 * back to an older state. Errors are logged and retried with rising delays, for ever. There is no resync: listeners
 * that fail must remember themselves (the work queue does).
 *
 * Objects in it are shared by everybody and must not be changed.
 */
import { delay, startAttempt } from '#client/abort.ts';
import type { Reader } from '#client/client.ts';
import { ObjectCache } from '#client/object-cache.ts';
import type { IndexFunction, ObjectChange } from '#client/object-cache.ts';
import { objectKey } from '#client/object-key.ts';
import { listAll } from '#client/paged-list.ts';
import { noteRead } from '#client/read-scope.ts';
import { compareRevisions, isRevision } from '#client/revision.ts';
import { TransportError } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { groupResource } from '#kube/meta.ts';
import type { KubeObject, ResourceType, Stored, WatchEvent } from '#kube/meta.ts';
import { backoffMs, jittered } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { invariant } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';

/** Must not throw; what it throws is logged. The key is `namespace/name`. */
export type ChangeListener<T extends KubeObject> = (key: string, change: ObjectChange<T>) => void;

export interface InformerOptions<T extends KubeObject> {
  readonly reader: Pick<Reader, 'list' | 'watch'>;
  readonly type: ResourceType<T>;
  readonly clock: Clock;
  readonly log: Log;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly indexes?: Readonly<Record<string, IndexFunction<T>>>;
  readonly pageSize?: number;
  /** For the spread of delays; tests hand in their own. */
  readonly random?: () => number;
}

const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** The server ends a watch after it; spread, so that not all come back at once. */
const WATCH_SECONDS = 600;
/** How much longer a server may take for that before we end it ourselves. */
const WATCH_GRACE_MS = 30_000;
/** A watch that ended sooner and showed nothing counts as failed, so that it is not repeated without a pause. */
const SHORT_WATCH_MS = 1000;
/** A watch that held this long makes up for earlier failures. */
const GOOD_WATCH_MS = 60_000;

interface Waiter {
  readonly ready: () => boolean;
  readonly resolve: (reached: boolean) => void;
}

export class Informer<T extends KubeObject> {
  readonly type: ResourceType<T>;
  readonly #options: InformerOptions<T>;
  readonly #log: Log;
  readonly #cache: ObjectCache<T>;
  readonly #listeners = new Set<ChangeListener<T>>();
  readonly #waiters = new Set<Waiter>();
  #state: 'new' | 'running' | 'stopped' = 'new';
  /** Whether #revision is one that a watch can start from. */
  #listed = false;
  #synced = false;
  /** Where to go on: the last event, list or bookmark. */
  #revision = '0';
  /** The last event or list. Bookmarks do not count, so that one that overtakes an event hides nothing. */
  #seen = '0';
  #failures = 0;
  /** How often history was gone since something was last seen. */
  #expiries = 0;

  constructor(options: InformerOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#log = options.log.child({ informer: groupResource(options.type) });
    this.#cache = new ObjectCache(options.indexes);
  }

  /** Everything up to it is in the cache. */
  get revision(): string {
    return this.#revision;
  }

  get size(): number {
    return this.#cache.size;
  }

  get(key: string): Stored<T> | undefined {
    noteRead(this.type);
    return this.#cache.get(key);
  }

  list(): Stored<T>[] {
    noteRead(this.type);
    return this.#cache.list();
  }

  /** For those who share the informer: objects are found by it from now on. The name must mean the same to all. */
  addIndex(name: string, values: IndexFunction<T>): void {
    this.#cache.addIndex(name, values);
  }

  /** Throws where there is no index of that name. */
  byIndex(name: string, value: string): Stored<T>[] {
    noteRead(this.type);
    return this.#cache.byIndex(name, value);
  }

  /** Calls back for what is in the cache already, then for each change. The result ends it. */
  onChange(listener: ChangeListener<T>): () => void {
    for (const object of this.#cache.list()) this.#tell(listener, objectKey(object), { old: undefined, new: object });
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when the first list is in the cache; rejects when the informer stops before. */
  async synced(): Promise<void> {
    const synced = await this.until(() => this.#synced);
    if (!synced) throw new Error(`Cannot sync ${groupResource(this.type)}: the informer has stopped`);
  }

  /**
   * True when the cache has reached that revision, as a write returned it. Also true when the server was set back
   * to an older state: that revision will never come, and the cache is as new as it can be.
   */
  reached(resourceVersion: string, options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const start = this.#rewinds;
    const ready = () => this.#rewinds !== start || compareRevisions(this.#revision, resourceVersion) >= 0;
    return this.until(() => this.#synced && ready(), options);
  }
  #rewinds = 0;

  /** True as soon as the condition holds, looked at now and after each change; false on abort or when stopped. */
  until(ready: () => boolean, { signal }: { signal?: AbortSignal } = {}): Promise<boolean> {
    if (ready()) return Promise.resolve(true);
    if (this.#state === 'stopped' || signal?.aborted) return Promise.resolve(false);
    return new Promise((resolve) => {
      const onAbort = (): void => waiter.resolve(false);
      const waiter: Waiter = {
        ready,
        resolve: (reached) => {
          this.#waiters.delete(waiter);
          signal?.removeEventListener('abort', onAbort);
          resolve(reached);
        },
      };
      this.#waiters.add(waiter);
      signal?.addEventListener('abort', onAbort);
    });
  }

  /** Runs until the signal aborts; resolves then, never rejects. May be called once. */
  async start({ signal }: { signal: AbortSignal }): Promise<void> {
    invariant(this.#state === 'new', 'an informer is started once');
    this.#state = 'running';
    while (!signal.aborted) {
      try {
        await this.#round(signal);
      } catch (error) {
        if (!signal.aborted) await this.#backOff(error, signal);
      }
    }
    this.#state = 'stopped';
    for (const waiter of [...this.#waiters]) waiter.resolve(false);
  }

  async #round(signal: AbortSignal): Promise<void> {
    // The first watch follows its list at once; before each later one the server may have been replaced.
    const fresh = !this.#listed || (await this.#wentBack(signal));
    if (fresh) await this.#relist(signal);
    await this.#watch(signal);
  }

  /** A server that was restored from a backup would leave a watch from "the future" waiting in silence. */
  async #wentBack(signal: AbortSignal): Promise<boolean> {
    const { reader, type } = this.#options;
    const { metadata } = await reader.list(type, { ...this.#scope(), limit: 1, signal });
    return compareRevisions(metadata.resourceVersion, this.#revision) < 0;
  }

  async #relist(signal: AbortSignal): Promise<void> {
    const { reader, type, pageSize } = this.#options;
    this.#listed = false;
    const { items, resourceVersion } = await listAll(reader, type, { ...this.#scope(), pageSize, signal });
    if (!isRevision(resourceVersion)) throw new TransportError('the list has no resourceVersion to watch from');
    if (signal.aborted) return;
    if (compareRevisions(resourceVersion, this.#revision) < 0) {
      this.#rewinds++;
      this.#log.warn({ from: this.#revision, to: resourceVersion }, 'the server was set back to an older state');
    }
    const changes = this.#cache.replace(items);
    this.#revision = resourceVersion;
    this.#seen = resourceVersion;
    this.#listed = true;
    this.#synced = true;
    for (const [key, change] of changes) this.#notify(key, change);
    this.#wakeWaiters();
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { reader, type, clock, random } = this.#options;
    const from = this.#revision;
    // From 0 the server first shows all objects, by name: their revisions are in no order, and it cannot go on from
    // the middle of it.
    const ordered = from !== '0';
    const timeoutSeconds = Math.ceil(jittered(WATCH_SECONDS, random));
    const timeoutMs = timeoutSeconds * 1000 + WATCH_GRACE_MS;
    const error = () => new TransportError('the server did not end the watch in time');
    const attempt = startAttempt(clock, { timeoutMs, error, signal });
    const startedAt = clock.now();
    let progress = false;
    try {
      const where = { resourceVersion: from, allowWatchBookmarks: true, timeoutSeconds };
      for await (const event of reader.watch(type, { ...this.#scope(), ...where, signal: attempt.signal })) {
        if (attempt.signal.aborted) break;
        if (!this.#take(event, ordered)) continue;
        progress = true;
        this.#recovered();
      }
    } finally {
      attempt.release();
      if (!ordered) this.#listed = false;
      if (clock.now() - startedAt >= GOOD_WATCH_MS) this.#recovered();
    }
    if (!progress && clock.now() - startedAt < SHORT_WATCH_MS) {
      throw new TransportError('the server ended the watch at once');
    }
  }

  /** False for what was seen before. */
  #take({ type, object }: WatchEvent<Stored<T>>, ordered: boolean): boolean {
    const revision = object.metadata.resourceVersion;
    if (!isRevision(revision)) throw new TransportError('a watch event has no resourceVersion to go on from');
    const advanced = compareRevisions(revision, this.#revision) > 0;
    const change = type === 'BOOKMARK' ? undefined : this.#changeBy(type, object, ordered);
    if (advanced) this.#revision = revision;
    if (type !== 'BOOKMARK' && compareRevisions(revision, this.#seen) > 0) this.#seen = revision;
    if (change !== undefined) this.#notify(objectKey(object), change);
    if (advanced || change !== undefined) this.#wakeWaiters();
    return advanced;
  }

  #changeBy(type: WatchEvent['type'], object: Stored<T>, ordered: boolean): ObjectChange<T> | undefined {
    const key = objectKey(object);
    const revision = object.metadata.resourceVersion;
    const known = this.#cache.get(key);
    const age = known === undefined ? 1 : compareRevisions(revision, known.metadata.resourceVersion);
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        // The second check alone would bring back an object whose deletion was seen, when its past is sent again.
        if (age <= 0 || (ordered && compareRevisions(revision, this.#seen) <= 0)) return undefined;
        return this.#cache.put(key, object);
      case 'DELETED':
        // Some servers send the last state unchanged, without a revision of its own.
        return age < 0 ? undefined : this.#cache.remove(key);
      default:
        return undefined;
    }
  }

  async #backOff(error: unknown, signal: AbortSignal): Promise<void> {
    if (isExpired(error)) {
      this.#listed = false;
      this.#log.debug({ err: error }, 'the revision is gone; listing again');
      // That is no fault, unless it happens over and over.
      if (++this.#expiries === 1) return;
    }
    this.#failures++;
    const delayMs = Math.round(jittered(backoffMs(this.#failures, BACKOFF), this.#options.random));
    const fields = { err: error, failures: this.#failures, delayMs };
    this.#log.warn(fields, `Cannot follow ${groupResource(this.type)}; trying again`);
    await delay(this.#options.clock, delayMs, { signal });
  }

  #recovered(): void {
    this.#failures = 0;
    this.#expiries = 0;
  }

  #scope() {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }

  #notify(key: string, change: ObjectChange<T>): void {
    for (const listener of this.#listeners) this.#tell(listener, key, change);
  }

  #tell(listener: ChangeListener<T>, key: string, change: ObjectChange<T>): void {
    try {
      listener(key, change);
    } catch (error) {
      this.#log.error({ err: error, key }, 'a listener of the informer threw');
    }
  }

  #wakeWaiters(): void {
    for (const waiter of [...this.#waiters]) if (waiter.ready()) waiter.resolve(true);
  }
}

/** The server cannot go on from that revision: it forgot it, or has not come to it (yet, or any more). */
function isExpired(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.code === 410) return true;
  return error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') ?? false;
}
