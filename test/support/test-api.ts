/** Runs the engine's core in this process on a memory store: a test sends requests and gets parsed responses. */
import assert from 'node:assert/strict';
import type { RunningController } from '#runtime/controller.ts';
import { createCore, type Core } from '#engine/core.ts';
import { MASTERS } from '#engine/auth/groups.ts';
import type { ApiHandler, ApiRequest, StreamSink, UserInfo } from '#engine/request/request.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import type { AuditSink } from '#engine/audit/audit-record.ts';
import type { LocalServices } from '#engine/remote/local-services.ts';
import type { Store } from '#engine/store/store.ts';
import type { TokenLookup } from '#engine/auth/tokens.ts';
import { startControllers } from '#engine/controllers/start.ts';
import { systemClock, type Clock } from '#lib/clock.ts';
import { FairTurns } from '#lib/fair-turns.ts';
import { silentLog } from '#lib/log.ts';

export const ADMIN: UserInfo = { name: 'admin', groups: [MASTERS, 'system:authenticated'] };
/** The CA that pods get; no test verifies it. */
export const TEST_CA = 'PEM';
export const MALLORY: UserInfo = { name: 'mallory', groups: ['system:authenticated'] };

export interface CallOptions {
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly user?: UserInfo;
  /** By default the request comes from this process. */
  readonly sourceIp?: string;
}

// The body of a response is whatever the API returns; tests read it without types.
// oxlint-disable-next-line typescript/no-explicit-any
export type Loose = any;

export interface TestResponse {
  readonly status: number;
  readonly body: Loose;
  readonly text: string;
  readonly warnings: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
}

export interface WatchProbe {
  readonly events: { type: string; object: Loose }[];
  readonly ended: Promise<void>;
  /** Resolves once there are this many events. */
  awaitEvents(count: number): Promise<{ type: string; object: Loose }[]>;
  stop(): void;
}

export interface TestApi {
  readonly core: Core;
  readonly store: Store;
  call(method: string, url: string, options?: CallOptions): Promise<TestResponse>;
  /** Like `call`, but throws if the request fails. */
  ok(method: string, url: string, options?: CallOptions): Promise<Loose>;
  watch(url: string, options?: CallOptions): Promise<WatchProbe>;
  /** The controllers of the engine. */
  readonly controllers: readonly RunningController[];
  /** Waits until no controller has anything left to do. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

export interface TestApiOptions {
  readonly store?: Store;
  readonly clock?: Clock;
  readonly tokens?: TokenLookup;
  /** False: namespaces and CRDs are stored, but no controller acts on them. */
  readonly controllers?: boolean;
  /** Webhooks and aggregated APIs in this process. */
  readonly services?: LocalServices;
  readonly audit?: AuditSink;
  /** True if Services of type LoadBalancer get the addresses of the nodes. */
  readonly loadBalancer?: boolean;
  /** Wraps the handler that all clients use. */
  readonly wrapHandler?: (handler: ApiHandler) => ApiHandler;
}

export async function startTestApi({
  store,
  clock = systemClock,
  tokens,
  controllers = true,
  services,
  audit,
  loadBalancer = false,
  wrapHandler = (handler) => handler,
}: TestApiOptions = {}): Promise<TestApi> {
  const open = store ?? (await openMemoryStore());
  // Without rests between large requests: tests wait only for promises.
  const turns = new FairTurns(() => 0);
  const created = createCore({ store: open, turns, clock, log: silentLog, tokens, services, audit });
  const core = { ...created, handler: wrapHandler(created.handler) };
  const running = controllers
    ? await startControllers({ core, caPem: TEST_CA, loadBalancer, clock, log: silentLog })
    : undefined;
  core.markStarted();

  const call: TestApi['call'] = async (method, url, options = {}) => {
    const response = await core.handler(requestOf(method, url, options));
    if (!('body' in response)) throw new Error(`${url} returned a stream`);
    const bytes = Array.isArray(response.body) ? Buffer.concat(response.body) : (response.body as Buffer);
    const text = bytes.toString('utf8');
    const json = response.contentType.startsWith('application/json');
    const body: Loose = json && text !== '' ? JSON.parse(text) : text;
    return { status: response.status, body, text, warnings: response.warnings ?? [], headers: response.headers ?? {} };
  };

  return {
    core,
    store: open,
    call,
    async ok(method, url, options) {
      const { status, body } = await call(method, url, options);
      if (status >= 300) throw new Error(`${method} ${url}: ${status} ${JSON.stringify(body)}`);
      return body;
    },
    async watch(url, options = {}) {
      const response = await core.handler(requestOf('GET', url, options));
      if (!('stream' in response)) throw new Error(`${url} returned no stream: ${response.status}`);
      return collectEvents(response.stream);
    },
    async settle() {
      for (let revision = -1; revision !== open.revision;) {
        revision = open.revision;
        for (const controller of running?.controllers ?? []) await controller.idle();
        for (let turn = 0; turn < QUIET_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
        for (const controller of running?.controllers ?? []) await controller.idle();
      }
    },
    controllers: running?.controllers ?? [],
    async stop() {
      for (const { violations = [] } of running?.controllers ?? []) assert.deepEqual(violations, []);
      await running?.stop();
      core.stop();
      await open.close();
    },
  };
}

/** Each write reaches every informer of this process within this many turns of the event loop. */
const QUIET_TURNS = 20;

function requestOf(method: string, url: string, options: CallOptions): ApiRequest {
  const [path = '', query = ''] = url.split('?', 2);
  const { body, user = ADMIN } = options;
  const bytes = Buffer.isBuffer(body)
    ? body
    : Buffer.from(typeof body === 'string' ? body : (JSON.stringify(body) ?? ''));
  return {
    method,
    path,
    query: new URLSearchParams(query),
    user,
    accept: options.accept ?? 'application/json',
    contentType: options.contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'),
    userAgent: 'test',
    ...(options.sourceIp === undefined ? { isLocal: true } : { sourceIp: options.sourceIp }),
    body: async () => bytes,
    signal: new AbortController().signal,
  };
}

type Stream = (sink: StreamSink) => () => void;

function collectEvents(stream: Stream): WatchProbe {
  const events: { type: string; object: Loose }[] = [];
  const waiting: { count: number; resolve: () => void }[] = [];
  let finish: () => void = () => {};
  const ended = new Promise<void>((resolve) => (finish = resolve));
  const stop = stream({
    write(chunk) {
      for (const line of chunk.toString('utf8').split('\n')) {
        if (line !== '') events.push(JSON.parse(line) as { type: string; object: Loose });
      }
      for (const waiter of waiting) if (events.length >= waiter.count) waiter.resolve();
    },
    bufferedBytes: 0,
    onDrain: (fn) => void setImmediate(fn),
    end: () => finish(),
  });
  return {
    events,
    ended,
    async awaitEvents(count) {
      if (events.length < count) await new Promise<void>((resolve) => waiting.push({ count, resolve }));
      return events;
    },
    stop,
  };
}
