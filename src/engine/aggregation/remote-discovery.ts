/**
 * The latest documents of all aggregated API servers: fetched when an APIService is created or changes and every
 * minute, a few at a time. A server that does not respond keeps its documents and is Stale; others are not affected.
 */
import type { RemoteVersion } from '#engine/aggregation/aggregation.ts';
import { fetchDocuments, type RemoteDocuments } from '#engine/aggregation/fetch-documents.ts';
import type { RemoteApi } from '#engine/aggregation/remote-api.ts';
import type { RemoteService } from '#engine/aggregation/remote-service.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';

const REFRESH_MS = 60_000;
const MAX_AT_ONCE = 4;

export interface AggregatedApi {
  readonly api: RemoteApi;
  readonly service: RemoteService;
}

interface CachedDocuments {
  served: AggregatedApi;
  documents: RemoteDocuments;
  freshness: RemoteVersion['freshness'];
}

const NO_DOCUMENTS: RemoteDocuments = { resources: [], openApiV3Hash: undefined, openApiV2: undefined };

export class RemoteDiscovery {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #cached = new Map<string, CachedDocuments>();
  /** Names to fetch, without duplicates. */
  readonly #waiting = new Set<string>();
  readonly #ending = new AbortController();
  #running = 0;
  #generation = 0;
  #versions: readonly RemoteVersion[] = [];
  #idle: (() => void)[] = [];
  #stopTimer: () => void = () => {};

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  get generation(): number {
    return this.#generation;
  }

  get versions(): readonly RemoteVersion[] {
    return this.#versions;
  }

  /** Sets the aggregated APIs; fetches those that changed. */
  replace(all: readonly AggregatedApi[]): void {
    const names = new Set(all.map(({ api }) => api.name));
    for (const name of this.#cached.keys()) if (!names.has(name)) this.#cached.delete(name);
    for (const served of all) {
      const { name } = served.api;
      const known = this.#cached.get(name);
      if (known !== undefined && deepEqual(known.served.api, served.api)) continue;
      const moved = known === undefined || known.served.service !== served.service;
      const kept = moved ? { documents: NO_DOCUMENTS, freshness: 'Stale' as const } : known;
      this.#cached.set(name, { ...kept, served });
      this.#waiting.add(name);
    }
    this.#publish();
    this.#work();
    this.#schedule();
  }

  /** Resolves when nothing is being fetched. */
  async settled(): Promise<void> {
    if (this.#running === 0) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  stop(): void {
    this.#stopTimer();
    this.#waiting.clear();
    this.#cached.clear();
    this.#ending.abort(new Error('the engine is stopping'));
  }

  /** No timer runs while there are no aggregated APIs. */
  #schedule(): void {
    this.#stopTimer();
    if (this.#cached.size === 0) return;
    this.#stopTimer = this.#clock.after(REFRESH_MS, () => {
      for (const name of this.#cached.keys()) this.#waiting.add(name);
      this.#work();
      this.#schedule();
    });
  }

  #work(): void {
    for (const name of this.#waiting) {
      if (this.#running >= MAX_AT_ONCE) return;
      this.#waiting.delete(name);
      this.#running++;
      void this.#fetch(name).finally(() => {
        this.#running--;
        this.#work();
        if (this.#running === 0) for (const resolve of this.#idle.splice(0)) resolve();
      });
    }
  }

  async #fetch(name: string): Promise<void> {
    const before = this.#cached.get(name);
    if (before === undefined) return;
    const { api, service } = before.served;
    let { documents } = before;
    let freshness: CachedDocuments['freshness'] = 'Current';
    try {
      documents = await fetchDocuments(api, service, { clock: this.#clock, signal: this.#ending.signal });
    } catch (error) {
      freshness = 'Stale';
      this.#log.debug({ err: error, apiService: name }, 'Cannot fetch discovery');
    }
    const known = this.#cached.get(name);
    // Another service may have replaced it meanwhile.
    if (known === undefined || known.served.service !== service) return;
    known.documents = documents;
    known.freshness = freshness;
    this.#publish();
  }

  #publish(): void {
    const versions = [...this.#cached.values()].map(({ served: { api }, documents, freshness }): RemoteVersion => {
      const { group, version, groupPriority, versionPriority } = api;
      return { group, version, groupPriority, versionPriority, freshness, ...documents };
    });
    if (deepEqual(versions, this.#versions)) return;
    this.#versions = versions;
    this.#generation++;
  }
}
