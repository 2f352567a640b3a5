/** API requests of the tour in its own namespace, and waiting for conditions. */
import type { ApiConnection } from '#cli/connection/api-connection.ts';
import { sleepAlive } from '#lib/keep-alive.ts';
import { verbPath } from '#cli/connection/verb-path.ts';
import { collectionPath, objectPath } from '#client/resource-path.ts';
import { ApiError, isApiError } from '#kube/api-error.ts';
import type { KubeList, KubeObject, ResourceType, Stored } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';

const POLL_MS = 300;
/** Long, because OVMF takes 15 s under emulation even on an idle machine. */
const TIMEOUT_MS = 300_000;

export interface TourApiOptions {
  readonly connection: ApiConnection;
  readonly namespace: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly onWait?: (what: string) => void;
}

export class TourApi {
  readonly connection: ApiConnection;
  readonly namespace: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called with what the tour waits for. */
  readonly onWait: (what: string) => void;

  constructor(options: TourApiOptions) {
    this.connection = options.connection;
    this.namespace = options.namespace;
    this.clock = options.clock;
    this.signal = options.signal;
    this.onWait = options.onWait ?? (() => {});
  }

  async create<T extends KubeObject>(
    type: ResourceType<T>,
    object: Omit<T, 'apiVersion' | 'kind'>,
  ): Promise<Stored<T>> {
    const { group, version, kind } = type;
    const body = { apiVersion: group === '' ? version : `${group}/${version}`, kind, ...object };
    const namespace = type.namespaced ? this.namespace : undefined;
    return (await this.connection.post(collectionPath(type, namespace), body)) as Stored<T>;
  }

  /** Returns undefined if there is none. */
  async find<T extends KubeObject>(type: ResourceType<T>, name: string): Promise<Stored<T> | undefined> {
    try {
      return (await this.connection.get(this.#path(type, name))) as Stored<T>;
    } catch (error) {
      if (isApiError(error, 'NotFound')) return undefined;
      throw error;
    }
  }

  async list<T extends KubeObject>(type: ResourceType<T>, labelSelector = ''): Promise<Stored<T>[]> {
    const namespace = type.namespaced ? this.namespace : undefined;
    const path = `${collectionPath(type, namespace)}?labelSelector=${encodeURIComponent(labelSelector)}`;
    return ((await this.connection.get(path)) as KubeList<Stored<T>>).items;
  }

  async patch(type: ResourceType, name: string, body: object): Promise<void> {
    await this.connection.patch(this.#path(type, name), body);
  }

  async remove(type: ResourceType, name: string): Promise<void> {
    const found = await this.find(type, name);
    if (found !== undefined) await this.connection.remove(this.#path(type, name), found.metadata.uid);
  }

  /** Calls a verb of a VM like virtctl. */
  async verb(name: string, verb: string, body: object = {}): Promise<void> {
    await this.connection.put(verbPath('virtualmachines', this.namespace, name, verb), body);
  }

  async waitUntil<T extends KubeObject>(
    type: ResourceType<T>,
    name: string,
    what: string,
    ready: (object: Stored<T> | undefined) => boolean,
  ): Promise<void> {
    await waitFor(this, what, async () => (ready(await this.find(type, name)) ? true : undefined));
  }

  #path(type: ResourceType, name: string): string {
    return objectPath(type, type.namespaced ? { namespace: this.namespace, name } : { name });
  }
}

/** The tour cannot continue. The message states what it waited for or what was refused. */
export class TourError extends Error {
  override name = 'TourError';
}

/** Polls until the result is not undefined, and returns it. Throws TourError after the timeout. */
export async function waitFor<T>(
  { clock, signal, onWait }: Pick<TourApi, 'clock' | 'signal' | 'onWait'>,
  what: string,
  poll: () => Promise<T | undefined>,
  { timeoutMs = TIMEOUT_MS }: { timeoutMs?: number } = {},
): Promise<T> {
  const until = clock.elapsed() + timeoutMs;
  onWait(what);
  for (;;) {
    signal.throwIfAborted();
    const found = await poll();
    if (found !== undefined) return found;
    if (clock.elapsed() > until) throw new TourError(`timed out after ${timeoutMs / 1000} s waiting for ${what}`);
    await sleepAlive(clock, POLL_MS);
  }
}

/** Returns the message of the refusal, or undefined if the attempt succeeded. */
export async function captureRefusal(attempt: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await attempt();
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code < 500) return error.message;
    throw error;
  }
}
