/** The connection of one client to a FakeApi, which a test can cut, block or let fail. */
import { delay } from '#client/abort.ts';
import { raceSignal } from '#lib/race-signal.ts';
import type { Client } from '#client/client.ts';
import { jsonLines } from '#client/json-lines.ts';
import { createClient } from '#client/rest-client.ts';
import type { FakeApi } from '#client/testing/fake-api.ts';
import { TransportError, describeRequest } from '#client/transport.ts';
import type { Transport, TransportRequest } from '#client/transport.ts';
import { ApiError } from '#kube/api-error.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { Clock } from '#lib/clock.ts';

/**
 * `refused`: requests fail at once. `held`: requests wait forever. `deaf`: the server processes requests, but its
 * responses are lost.
 */
export type LinkState = 'up' | 'refused' | 'held' | 'deaf';

export class FakeLink {
  state: LinkState = 'up';
  /** Every request, as `GET /api/v1/pods?limit=1`. */
  readonly requests: string[] = [];
  /** Errors for the next requests, one each. */
  readonly failures: Error[] = [];
  /** Called after the server has processed a write and before the client receives the response. */
  afterWrite: ((request: TransportRequest) => void) | undefined;
  readonly transport: Transport;
  readonly client: Client;
  readonly #api: FakeApi;
  readonly #types: readonly ResourceType[];
  readonly #latency: { clock: Clock; ms(): number } | undefined;

  /** With a latency, each direction of a request takes that long. */
  constructor(api: FakeApi, types: readonly ResourceType[], latency?: { clock: Clock; ms(): number }) {
    this.#api = api;
    this.#types = types;
    this.#latency = latency;
    this.transport = {
      request: (request) => raceSignal(this.#request(request), request.signal),
      stream: (request) => this.#stream(request),
    };
    this.client = createClient(this.transport);
  }

  /** Returns the number of requests with this prefix. Lists and watches are both GET: use `GET /api/v1/pods?watch`. */
  count(prefix: string): number {
    return this.requests.filter((request) => request.startsWith(prefix)).length;
  }

  async #request(request: TransportRequest): Promise<{ status: number; body: unknown; warnings: readonly string[] }> {
    request.signal?.throwIfAborted();
    await this.#send(request);
    // A sent request arrives even if its sender has given up.
    await this.#waitLatency();
    const body: unknown = JSON.parse(JSON.stringify(this.#serve(request)));
    if (request.method !== 'GET') this.afterWrite?.(request);
    await this.#waitLatency();
    if (this.state === 'deaf') await new Promise(() => {});
    return { status: 200, body, warnings: [] };
  }

  async *#stream(request: TransportRequest): AsyncGenerator<unknown, void, undefined> {
    await raceSignal(this.#send(request), request.signal);
    const { type, namespace } = this.#parse(request.path);
    const since = Number(request.query?.get('resourceVersion') ?? 0);
    const bookmarks = request.query?.get('allowWatchBookmarks') === 'true';
    const stream = this.#api.watch(type, { namespace, since, bookmarks });
    yield* jsonLines(stream.read(request.signal), { what: describeRequest(request), readLine: request.readLine });
  }

  async #send({ method, path, query }: TransportRequest): Promise<void> {
    this.requests.push(`${method} ${path}${query === undefined || query.size === 0 ? '' : `?${query.toString()}`}`);
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    if (this.state === 'refused') throw new TransportError(`Cannot ${method} ${path}: connect ECONNREFUSED`);
    if (this.state === 'held') await new Promise(() => {});
  }

  async #waitLatency(): Promise<void> {
    const latency = this.#latency;
    const never = new AbortController().signal;
    if (latency !== undefined) await delay(latency.clock, latency.ms(), { signal: never });
  }

  #serve({ method, path, query, body }: TransportRequest): unknown {
    const { type, namespace, name, subresource } = this.#parse(path);
    const key = type.namespaced && namespace !== undefined ? `${namespace}/${name}` : (name ?? '');
    switch (method) {
      case 'GET':
        if (name !== undefined) return this.#api.get(type, key);
        return this.#api.list(type, {
          namespace,
          limit: Number(query?.get('limit') ?? 0),
          token: query?.get('continue') ?? undefined,
        });
      case 'POST':
        return this.#api.create(type, body as KubeObject, { dryRun: query?.has('dryRun') });
      case 'PUT':
        return this.#api.update(type, body as KubeObject, { subresource });
      case 'PATCH':
        return this.#api.patch(type, key, body, { subresource });
      case 'DELETE':
        return this.#api.delete(type, key, (body as { preconditions?: { uid?: string } }).preconditions);
    }
  }

  #parse(path: string): { type: ResourceType; namespace?: string; name?: string; subresource?: string } {
    const parts = path.split('/').slice(1);
    const [group, version] = parts[0] === 'api' ? ['', parts[1]] : [parts[1], parts[2]];
    const rest = parts.slice(parts[0] === 'api' ? 2 : 3);
    const scoped = rest[0] === 'namespaces' && rest.length >= 3;
    const [plural, name, subresource] = scoped ? rest.slice(2) : rest;
    const namespace = scoped ? rest[1] : undefined;
    const type = this.#types.find(
      (known) => known.group === group && known.version === version && known.plural === plural,
    );
    if (type === undefined) throw new ApiError(404, 'NotFound', 'the server could not find the requested resource');
    return { type, namespace, name, subresource };
  }
}
