/**
 * An informer: a cache of the objects of one kind that follows the server, and notifies listeners of each state.
 *
 *                ┌────────────── 410, or the server has an older revision ─────────────┐
 *                ▼                                                                     │
 *   start ──► list ──► watch ──ended, reset, restart──► compare with the revision ─────┴──► watch from the last revision
 *
 * No state is seen twice, and none is skipped that the server still has; only the changes before a 410 are merged into
 * one. For each key, every object is newer than the one before, unless the server itself was restored to an older
 * state. Errors are logged and retried with growing delays, forever. There is no resync: listeners must remember their
 * own failures (the work queue does).
 *
 * The objects are shared and must not be changed.
 */
import { delay, startAttempt } from '#client/abort.ts';
import type { Reader } from '#client/client.ts';
import { ObjectCache } from '#client/object-cache.ts';
import type { IndexFunction, ObjectChange } from '#client/object-cache.ts';
import { objectKey } from '#client/object-key.ts';
import { listAll } from '#client/paged-list.ts';
import { recordRead } from '#client/read-scope.ts';
import { compareRevisions, isRevision } from '#client/revision.ts';
import { TransportError } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import { groupResource } from '#kube/meta.ts';
import type { KubeObject, ResourceType, Stored, WatchEvent } from '#kube/meta.ts';
import { backoffMs, addJitter } from '#lib/backoff.ts';
import type { Clock } from '#lib/clock.ts';
import { invariant } from '#lib/invariant.ts';
import type { Log } from '#lib/log.ts';

/** A listener for changes. Must not throw; errors are logged. The key is `namespace/name`. */
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
  /** The source of jitter; tests pass their own. */
  readonly random?: () => number;
}

const BACKOFF = { firstMs: 500, maxMs: 30_000 };
/** The server ends a watch after this time. Jittered, so that clients do not reconnect at the same time. */
const WATCH_SECONDS = 600;
/** The additional time for the server to end a watch before we abort it. */
const WATCH_GRACE_MS = 30_000;
/** A watch that ends sooner and without events counts as failed, so that it is not repeated without a pause. */
const SHORT_WATCH_MS = 1000;
/** A watch that lasts this long resets the count of failures. */
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
  /** True if a watch can start from #revision. */
  #listed = false;
  #synced = false;
  /** The revision of the last event, list or bookmark, from which to continue. */
  #revision = '0';
  /**
   * The revision of the last event or list. Ignores bookmarks, so that one that overtakes an event does not hide it.
   */
  #seen = '0';
  #failures = 0;
  /** The number of times that the revision was expired since the last event. */
  #expirations = 0;

  constructor(options: InformerOptions<T>) {
    this.type = options.type;
    this.#options = options;
    this.#log = options.log.child({ informer: groupResource(options.type) });
    this.#cache = new ObjectCache(options.indexes);
  }

  /** The revision that the cache has reached. */
  get revision(): string {
    return this.#revision;
  }

  get size(): number {
    return this.#cache.size;
  }

  get(key: string): Stored<T> | undefined {
    recordRead(this.type);
    return this.#cache.get(key);
  }

  list(): Stored<T>[] {
    recordRead(this.type);
    return this.#cache.list();
  }

  /** Adds an index. All users of a shared informer must mean the same by its name. */
  addIndex(name: string, values: IndexFunction<T>): void {
    this.#cache.addIndex(name, values);
  }

  /** Throws if there is no index with that name. */
  byIndex(name: string, value: string): Stored<T>[] {
    recordRead(this.type);
    return this.#cache.byIndex(name, value);
  }

  /** Returns the number of objects that byIndex returns, without reading them. */
  countByIndex(name: string, value: string): number {
    recordRead(this.type);
    return this.#cache.countByIndex(name, value);
  }

  /** Calls the listener for each cached object, then for each change. Returns a function that removes the listener. */
  onChange(listener: ChangeListener<T>): () => void {
    for (const object of this.#cache.list())
      this.#callListener(listener, objectKey(object), { old: undefined, new: object });
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Resolves when the first list is in the cache; rejects if the informer stops before. */
  async waitForSync(): Promise<void> {
    const synced = await this.waitUntil(() => this.#synced);
    if (!synced) throw new Error(`Cannot sync ${groupResource(this.type)}: the informer has stopped`);
  }

  /**
   * Resolves with true when the cache has reached the revision that a write returned. Also if the server was restored
   * to an older state: then that revision will never come, and the cache is as new as it can be.
   */
  waitForRevision(resourceVersion: string, options: { signal?: AbortSignal } = {}): Promise<boolean> {
    const start = this.#restores;
    const ready = () => this.#restores !== start || compareRevisions(this.#revision, resourceVersion) >= 0;
    return this.waitUntil(() => this.#synced && ready(), options);
  }
  #restores = 0;

  /**
   * Resolves with true as soon as the condition holds, checked now and after each change; with false on abort or stop.
   */
  waitUntil(ready: () => boolean, { signal }: { signal?: AbortSignal } = {}): Promise<boolean> {
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

  /** Runs until the signal is aborted, then resolves; never rejects. May be called once. */
  async start({ signal }: { signal: AbortSignal }): Promise<void> {
    invariant(this.#state === 'new', 'an informer is started once');
    this.#state = 'running';
    while (!signal.aborted) {
      try {
        await this.#listAndWatch(signal);
      } catch (error) {
        if (!signal.aborted) await this.#backOff(error, signal);
      }
    }
    this.#state = 'stopped';
    for (const waiter of [...this.#waiters]) waiter.resolve(false);
  }

  async #listAndWatch(signal: AbortSignal): Promise<void> {
    // The first watch follows its list at once; before each later watch, the server may have been restored from a
    // backup.
    const needsList = !this.#listed || (await this.#hasOlderRevision(signal));
    if (needsList) await this.#relist(signal);
    await this.#watch(signal);
  }

  /**
   * Reports whether the server was restored from a backup. It would not answer a watch from a revision in its future.
   */
  async #hasOlderRevision(signal: AbortSignal): Promise<boolean> {
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
      this.#restores++;
      this.#log.warn({ from: this.#revision, to: resourceVersion }, 'the server was restored to an older state');
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
    // A watch from 0 starts with all objects by name: their revisions are not in order, and it cannot be continued from
    // the middle.
    const ordered = from !== '0';
    const timeoutSeconds = Math.ceil(addJitter(WATCH_SECONDS, random));
    const timeoutMs = timeoutSeconds * 1000 + WATCH_GRACE_MS;
    const error = () => new TransportError('the server did not end the watch in time');
    const attempt = startAttempt(clock, { timeoutMs, error, signal });
    const startedAt = clock.now();
    let progress = false;
    try {
      const start = { resourceVersion: from, allowWatchBookmarks: true, timeoutSeconds };
      for await (const event of reader.watch(type, { ...this.#scope(), ...start, signal: attempt.signal })) {
        if (attempt.signal.aborted) break;
        if (!this.#handleEvent(event, ordered)) continue;
        progress = true;
        this.#resetFailures();
      }
    } finally {
      attempt.release();
      if (!ordered) this.#listed = false;
      if (clock.now() - startedAt >= GOOD_WATCH_MS) this.#resetFailures();
    }
    if (!progress && clock.now() - startedAt < SHORT_WATCH_MS) {
      throw new TransportError('the server ended the watch at once, without events');
    }
  }

  /** Applies an event. Returns false if it does not advance the revision. */
  #handleEvent({ type, object }: WatchEvent<Stored<T>>, ordered: boolean): boolean {
    const revision = object.metadata.resourceVersion;
    if (!isRevision(revision)) throw new TransportError('a watch event has no resourceVersion to continue from');
    const advanced = compareRevisions(revision, this.#revision) > 0;
    const change = type === 'BOOKMARK' ? undefined : this.#updateCache(type, object, ordered);
    if (advanced) this.#revision = revision;
    if (type !== 'BOOKMARK' && compareRevisions(revision, this.#seen) > 0) this.#seen = revision;
    if (change !== undefined) this.#notify(objectKey(object), change);
    if (advanced || change !== undefined) this.#wakeWaiters();
    return advanced;
  }

  #updateCache(type: WatchEvent['type'], object: Stored<T>, ordered: boolean): ObjectChange<T> | undefined {
    const key = objectKey(object);
    const revision = object.metadata.resourceVersion;
    const cached = this.#cache.get(key);
    const order = cached === undefined ? 1 : compareRevisions(revision, cached.metadata.resourceVersion);
    switch (type) {
      case 'ADDED':
      case 'MODIFIED':
        // Without the second check, a repeated old event would bring back an object whose deletion was seen.
        if (order <= 0 || (ordered && compareRevisions(revision, this.#seen) <= 0)) return undefined;
        return this.#cache.put(key, object);
      case 'DELETED':
        // Some servers send the last state unchanged, without a new revision.
        return order < 0 ? undefined : this.#cache.remove(key);
      default:
        return undefined;
    }
  }

  async #backOff(error: unknown, signal: AbortSignal): Promise<void> {
    if (isExpired(error)) {
      this.#listed = false;
      this.#log.debug({ err: error }, 'the revision has expired; listing again');
      // Not a failure, unless it happens repeatedly.
      if (++this.#expirations === 1) return;
    }
    this.#failures++;
    const delayMs = Math.round(addJitter(backoffMs(this.#failures, BACKOFF), this.#options.random));
    const fields = { err: error, failures: this.#failures, delayMs };
    this.#log.warn(fields, `Cannot follow ${groupResource(this.type)}; retrying`);
    await delay(this.#options.clock, delayMs, { signal });
  }

  #resetFailures(): void {
    this.#failures = 0;
    this.#expirations = 0;
  }

  #scope() {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return { namespace, labelSelector, fieldSelector };
  }

  #notify(key: string, change: ObjectChange<T>): void {
    for (const listener of this.#listeners) this.#callListener(listener, key, change);
  }

  #callListener(listener: ChangeListener<T>, key: string, change: ObjectChange<T>): void {
    try {
      listener(key, change);
    } catch (error) {
      this.#log.error({ err: error, key }, 'a listener of the informer failed');
    }
  }

  #wakeWaiters(): void {
    for (const waiter of [...this.#waiters]) if (waiter.ready()) waiter.resolve(true);
  }
}

/** Reports whether the server cannot watch from the revision: it has expired, or the server has not reached it. */
function isExpired(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  if (error.code === 410) return true;
  return error.details?.causes?.some(({ reason }) => reason === 'ResourceVersionTooLarge') ?? false;
}
