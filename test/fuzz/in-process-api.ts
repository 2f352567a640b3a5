/** The engine core in this process, with kinds to fuzz and without controllers, so that only requests change anything. */
import { createCore, type Core } from '#engine/core.ts';
import type { ApiRequest, ApiResponse, StreamResponse } from '#engine/request/request.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { systemClock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import { established, FREE_CRD, RICH_CRD } from '#test/fuzz/rich-kind.ts';
import { NAMESPACE, type FuzzRequest } from '#test/fuzz/requests.ts';
import { ADMIN, type Loose } from '#test/support/test-api.ts';

export interface FuzzAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

export interface InProcessApi {
  readonly core: Core;
  /** Returns and clears the errors that were logged since the last call. */
  takeErrors(): string[];
  send(request: FuzzRequest): Promise<FuzzAnswer>;
  stop(): Promise<void>;
}

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';

export async function startInProcessApi(): Promise<InProcessApi> {
  const store = await openMemoryStore();
  const errors: string[] = [];
  const core = createCore({ store, clock: systemClock, log: recordingLog(errors), audit: () => {} });
  core.markStarted();
  const api: InProcessApi = {
    core,
    takeErrors: () => errors.splice(0),
    async send(request) {
      const response = await core.handler(asRequest(request));
      return 'stream' in response ? await readStart(response) : answerOf(response);
    },
    async stop() {
      core.stop();
      await store.close();
    },
  };
  for (const [url, body] of initialRequests()) {
    const method = url.endsWith('/status') ? 'PATCH' : 'POST';
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    const bytes = Buffer.from(JSON.stringify(body));
    const { status, text } = await api.send({ method, url, contentType, accept: '', body: bytes });
    if (status >= 300) throw new Error(`Cannot prepare ${url}: ${text}`);
  }
  return api;
}

/** Yields the requests that create what all others need: a namespace with its account, and two served custom kinds. */
export function* initialRequests(): Generator<[url: string, body: Loose]> {
  yield ['/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }];
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  yield [`/api/v1/namespaces/${NAMESPACE}/serviceaccounts`, account];
  for (const crd of [RICH_CRD, FREE_CRD]) {
    yield [CRDS, crd];
    yield [`${CRDS}/${crd.metadata.name}/status`, established(crd)];
  }
}

function recordingLog(errors: string[]): Log {
  const log: Log = {
    debug: () => {},
    info: () => {},
    warn: () => {},
    error(fields, message) {
      const { err } = fields as { err?: unknown };
      errors.push(`${message}: ${err instanceof Error ? err.stack : JSON.stringify(fields)}`);
    },
    child: () => log,
  };
  return log;
}

function asRequest({ method, url, contentType, accept, body }: FuzzRequest): ApiRequest {
  const question = url.indexOf('?');
  return {
    method,
    path: question < 0 ? url : url.slice(0, question),
    query: new URLSearchParams(question < 0 ? '' : url.slice(question)),
    user: ADMIN,
    accept,
    contentType,
    userAgent: 'fuzz/1',
    body: async () => body,
    signal: new AbortController().signal,
  };
}

function answerOf(response: ApiResponse): FuzzAnswer {
  if (!('body' in response)) return { status: response.status, contentType: '', text: '' };
  const { status, contentType, body } = response;
  const bytes = Array.isArray(body) ? Buffer.concat(body) : (body as Buffer);
  return { status, contentType, text: bytes.toString('utf8') };
}

/** Returns what a watch sends at once. */
async function readStart({ status, contentType, stream }: StreamResponse): Promise<FuzzAnswer> {
  const chunks: Buffer[] = [];
  const stop = stream({
    write: (chunk) => void chunks.push(chunk),
    bufferedBytes: 0,
    onDrain: (fn) => void setImmediate(fn),
    end: () => {},
  });
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve));
  stop();
  // The text consists of frames; it is not one document.
  return { status, contentType: `${contentType};stream=watch`, text: Buffer.concat(chunks).toString('utf8') };
}
