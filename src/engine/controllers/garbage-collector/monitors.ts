/**
 * One informer of metadata for each kind that is served, following the registry as kinds come and go.
 *
 *   served ──► listing ──► synced ──► no longer served, or in another version ──► its last events are read ──► ended
 *                │
 *                └── not within 30 s: passed over, so that one broken kind does not hold up all others
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

export interface MonitorsOptions {
  readonly reader: Pick<Reader, 'list' | 'watch'>;
  readonly kinds: ServedKinds;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  onChange(type: ResourceType, change: ObjectChange<KubeObject>): void;
  /** The kind is not followed any more; what is known of its objects is worth nothing. */
  onKindRemoved(type: ResourceType): void;
  /** Everything that is served has been listed. Called again when kinds have changed. */
  onComplete(): void;
}

interface Monitor {
  readonly resource: Resource;
  readonly informer: Informer<KubeObject>;
  readonly stopping: AbortController;
  readonly stopped: Promise<void>;
  /** Synced, or passed over. */
  isSettled: boolean;
  isWatching: boolean;
  isStopping: boolean;
}

const SYNC_TIMEOUT_MS = 30_000;
/** The server ends the watches of a kind that goes; this long it may take for that. */
const STOP_TIMEOUT_MS = 5_000;

export class Monitors {
  readonly #options: MonitorsOptions;
  /** By collection: versions of a kind are the same objects. */
  readonly #monitors = new Map<string, Monitor>();
  readonly #waiting = new Set<() => void>();
  #generation = -1;

  constructor(options: MonitorsOptions) {
    this.#options = options;
    options.signal.addEventListener('abort', () => {
      for (const { stopping } of this.#monitors.values()) stopping.abort();
      this.#wake();
    });
  }

  /** Whether the informers show all that was there when they began. */
  get isComplete(): boolean {
    if (this.#generation !== this.#options.kinds.generation) return false;
    for (const { isSettled, isStopping } of this.#monitors.values()) if (!isSettled || isStopping) return false;
    return true;
  }

  get informers(): readonly Informer<KubeObject>[] {
    return [...this.#monitors.values()].map(({ informer }) => informer);
  }

  /** Resolves when complete, or when everything has stopped. */
  async whenComplete(): Promise<void> {
    while (!this.isComplete && !this.#options.signal.aborted) {
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  async stopped(): Promise<void> {
    await Promise.all([...this.#monitors.values()].map(({ stopped }) => stopped));
  }

  /** Compares with what is served now. Cheap when nothing has changed. */
  refresh(): void {
    const { kinds, signal } = this.#options;
    if (signal.aborted || this.#generation === kinds.generation) return;
    this.#generation = kinds.generation;
    const wanted = new Map(kinds.collectable().map((resource) => [resource.collection, resource]));
    for (const monitor of this.#monitors.values()) {
      if (wanted.get(monitor.resource.collection)?.version !== monitor.resource.version) void this.#leave(monitor);
    }
    for (const resource of wanted.values()) if (!this.#monitors.has(resource.collection)) this.#start(resource);
    this.#announce();
  }

  #start(resource: Resource): void {
    const { clock, log, onChange } = this.#options;
    const stopping = new AbortController();
    const { signal } = stopping;
    const reader = this.#followed(() => monitor);
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
      this.#announce();
    };
    const cancel = clock.after(SYNC_TIMEOUT_MS, () => {
      log.warn({ kind: resource.collection }, 'Cannot list a kind in time; garbage is collected without it');
      settle();
    });
    informer.synced().then(settle, cancel);
  }

  /** Knows whether a watch is open; a kind that leaves is over as soon as its last watch has been read to the end. */
  #followed(monitor: () => Monitor): MetadataReader {
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

  async #leave(monitor: Monitor): Promise<void> {
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
    // It may be served again, or in another version.
    this.#generation = -1;
    this.refresh();
  }

  #announce(): void {
    if (!this.isComplete) return;
    this.#options.onComplete();
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}
