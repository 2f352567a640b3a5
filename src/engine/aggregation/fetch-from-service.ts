/**
 * Requests of the engine itself to an aggregated API server. Responses are read completely, bounded in size and time.
 */
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { UpstreamError } from '#engine/remote/https-upstream.ts';
import type { CuttableSink } from '#engine/remote/relay-response.ts';
import type { ApiRequest, ApiResponse, StreamResponse, UserInfo } from '#engine/request/request.ts';
import type { Clock } from '#lib/clock.ts';
import { raceSignal } from '#lib/race-signal.ts';

/** kube-aggregator's own user, to which servers should not refuse their discovery. */
const AGGREGATOR_USER: UserInfo = { name: 'system:kube-aggregator', groups: [MASTERS, AUTHENTICATED] };

const ANSWER_TIMEOUT_MS = 5000;
const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

export interface ServiceResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface FetchOptions {
  readonly accept?: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

type Send = (request: ApiRequest) => ApiResponse | Promise<ApiResponse>;

/** Rejects with an Error that contains the reason. A function that ignores its signal does not block the caller. */
export async function fetchFromService(
  send: Send,
  path: string,
  { accept, clock, signal }: FetchOptions,
): Promise<ServiceResponse> {
  const ending = new AbortController();
  const tooLate = new UpstreamError('context deadline exceeded (Client.Timeout exceeded while awaiting headers)');
  const stopTimer = clock.after(ANSWER_TIMEOUT_MS, () => ending.abort(tooLate));
  const leave = () => ending.abort(signal.reason);
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await raceSignal(
      readWholeResponse(send, buildRequest(path, accept, ending.signal), ending.signal),
      ending.signal,
    );
  } finally {
    stopTimer();
    signal.removeEventListener('abort', leave);
    // Aborts what is still running; its result is not needed any more.
    ending.abort();
  }
}

function buildRequest(path: string, accept = 'application/json', signal: AbortSignal): ApiRequest {
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    user: AGGREGATOR_USER,
    accept,
    contentType: '',
    userAgent: 'kube-aggregator',
    body: async () => Buffer.alloc(0),
    signal,
  };
}

async function readWholeResponse(send: Send, request: ApiRequest, signal: AbortSignal): Promise<ServiceResponse> {
  const response = await send(request);
  if ('takeOver' in response) throw new UpstreamError('the response is not a document');
  const { status, contentType } = response;
  if ('stream' in response) return { status, contentType, body: await collect(response, signal) };
  const body = Buffer.isBuffer(response.body) ? response.body : Buffer.concat(response.body);
  if (body.length > MAX_DOCUMENT_BYTES) throw tooLong();
  return { status, contentType, body };
}

function collect(response: StreamResponse, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    // The response may write before the function that stops it is returned.
    let over = false;
    const source: { stop?: () => void } = {};
    const leave = (error?: Error) => {
      over = true;
      if (error !== undefined) reject(error);
      source.stop?.();
    };
    const sink: CuttableSink = {
      write(chunk) {
        bytes += chunk.length;
        if (bytes > MAX_DOCUMENT_BYTES) leave(tooLong());
        else chunks.push(chunk);
      },
      bufferedBytes: 0,
      onDrain: (fn) => void setImmediate(fn),
      end: () => resolve(Buffer.concat(chunks)),
      cut: () => leave(new UpstreamError('unexpected EOF')),
    };
    source.stop = response.stream(sink);
    if (over || signal.aborted) source.stop();
    else signal.addEventListener('abort', () => leave(), { once: true });
  });
}

const tooLong = () => new UpstreamError(`the response is larger than ${MAX_DOCUMENT_BYTES} bytes`);
