/**
 * Runs one metadata informer for each served kind, and follows the registry as kinds are added and removed.
 *
 *   served ──► listing ──► synced ──► no longer served, or in another version ──► last events read ──► removed
 *                │
 *                └── not within 30 s: skipped, so that one broken kind does not block all others
 */
import type { Reader } from '#client/client.ts';
import { Informer } from '#client/informer.ts';
import type { ObjectChange } from '#client/object-cache.ts';
import { metadataReader, type MetadataReader } from '#engine/controllers/garbage-collector/metadata-only.ts';
import type { ServedKinds } from '#engine/controllers/garbage-collector/served-kinds.ts';
import type { Resource } from '#engine/registry/resource.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

interface MonitorsOptions {
  readonly reader: Pick<Reader, 'list' | 'watch'>;
  readonly kinds: ServedKinds;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  onChange(type: ResourceType, change: ObjectChange<KubeObject>): void;
  /** Called when the informer of a kind has stopped. Its objects must be removed from the graph. */
  onKindRemoved(type: ResourceType): void;
  /** Called when all served kinds are listed, and again after each change of the kinds. */
  onComplete(): void;
}

interface Monitor {
  readonly resource: Resource;
  readonly informer: Informer<KubeObject>;
  readonly stopping: AbortController;
  readonly stopped: Promise<void>;
  /** True if it is synced or was skipped. */
  isSettled: boolean;
  isWatching: boolean;
  isStopping: boolean;
}

const SYNC_TIMEOUT_MS = 30_000;
/** The time within which the server closes the watches of a removed kind. */
const STOP_TIMEOUT_MS = 5_000;

export class Monitors {
  readonly #options: MonitorsOptions;
  /** By collection, because all versions of a kind are the same objects. */
  readonly #monitors = new Map<string, Monitor>();
  readonly #waiting = new Set<() => void>();
  #generation = -1;

  constructor(options: MonitorsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => {
      for (const { stopping } of this.#monitors.values()) stopping.abort();
      this.#resolveWaiting();
    });
  }

  /** True if the informers have listed all served kinds. */
  get isComplete(): boolean {
    if (this.#generation !== this.#options.kinds.generation) return false;
    for (const { isSettled, isStopping } of this.#monitors.values()) if (!isSettled || isStopping) return false;
    return true;
  }

  get informers(): readonly Informer<KubeObject>[] {
    return [...this.#monitors.values()].map(({ informer }) => informer);
  }

  /** Resolves when complete or stopped. */
  async whenComplete(): Promise<void> {
    while (!this.isComplete && !this.#options.signal.aborted) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  async stopped(): Promise<void> {
    await Promise.all([...this.#monitors.values()].map(({ stopped }) => stopped));
  }

  /** Starts and stops informers to match the served kinds. Cheap if nothing has changed. */
  refresh(): void {
    const { kinds, signal } = this.#options;
    if (signal.aborted || this.#generation === kinds.generation) return;
    this.#generation = kinds.generation;
    const wanted = new Map(kinds.collectable().map((resource) => [resource.collection, resource]));
    for (const monitor of this.#monitors.values()) {
      if (wanted.get(monitor.resource.collection)?.version !== monitor.resource.version)
        void this.#stopMonitor(monitor);
    }
    for (const resource of wanted.values()) if (!this.#monitors.has(resource.collection)) this.#start(resource);
    this.#notifyIfComplete();
  }

  #start(resource: Resource): void {
    const { clock, log, onChange } = this.#options;
    const stopping = new AbortController();
    const { signal } = stopping;
    const reader = this.#trackedReader(() => monitor);
    const informer = new Informer<KubeObject>({ reader, type: resource, clock, log });
    const stopped = informer.start({ signal });
    const monitor: Monitor = {
      resource,
      informer,
      stopping,
      stopped,
      isSettled: false,
      isWatching: false,
      isStopping: false,
    };
    this.#monitors.set(resource.collection, monitor);
    informer.onChange((_, change) => onChange(resource, change));
    const settle = (): void => {
      cancel();
      if (monitor.isSettled) return;
      monitor.isSettled = true;
      this.#notifyIfComplete();
    };
    const cancel = clock.after(SYNC_TIMEOUT_MS, () => {
      log.warn({ kind: resource.collection }, 'Cannot list a kind within 30 s; collecting garbage without it');
      settle();
    });
    informer.waitForSync().then(settle, cancel);
  }

  /** Tracks whether a watch is open. A monitor that is stopping ends when its last watch has been read to the end. */
  #trackedReader(monitor: () => Monitor): MetadataReader {
    const reader = metadataReader(this.#options.reader);
    return {
      list: (type, options) => reader.list(type, options),
      async *watch(type, options) {
        monitor().isWatching = true;
        try {
          yield* reader.watch(type, options);
        } finally {
          monitor().isWatching = false;
          if (monitor().isStopping) monitor().stopping.abort();
        }
      },
    };
  }

  async #stopMonitor(monitor: Monitor): Promise<void> {
    if (monitor.isStopping) return;
    monitor.isStopping = true;
    const { clock, onKindRemoved, signal } = this.#options;
    const cancel = clock.after(STOP_TIMEOUT_MS, () => monitor.stopping.abort());
    if (!monitor.isWatching) monitor.stopping.abort();
    await monitor.stopped;
    cancel();
    this.#monitors.delete(monitor.resource.collection);
    if (signal.aborted) return;
    onKindRemoved(monitor.resource);
    // The kind may be served again, or in another version.
    this.#generation = -1;
    this.refresh();
  }

  #notifyIfComplete(): void {
    if (!this.isComplete) return;
    this.#options.onComplete();
    this.#resolveWaiting();
  }

  #resolveWaiting(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
