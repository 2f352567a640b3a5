/** Questions that the engine itself asks a service behind it: answers whole, bounded in size and time. */
import { AUTHENTICATED, MASTERS } from '#engine/auth/groups.ts';
import { UpstreamError } from '#engine/remote/https-upstream.ts';
import type { CuttableSink } from '#engine/remote/relay-answer.ts';
import type { ApiRequest, ApiResponse, StreamResponse, UserInfo } from '#engine/request.ts';
import type { Clock } from '#lib/clock.ts';
import { raced } from '#lib/raced.ts';

/** As kube-aggregator calls itself; whoever is asked about its discovery should not refuse. */
const ASKER: UserInfo = { name: 'system:kube-aggregator', groups: [MASTERS, AUTHENTICATED] };

const ANSWER_TIMEOUT_MS = 5000;
export const MAX_DOCUMENT_BYTES = 8 * 1024 * 1024;

export interface ServiceResponse {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

export interface AskOptions {
  readonly accept?: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

type Ask = (request: ApiRequest) => ApiResponse | Promise<ApiResponse>;

/** Rejects with an Error that says why. A function that does not heed its signal keeps nobody waiting. */
export async function askService(
  ask: Ask,
  path: string,
  { accept, clock, signal }: AskOptions,
): Promise<ServiceResponse> {
  const ending = new AbortController();
  const tooLate = new UpstreamError('context deadline exceeded (Client.Timeout exceeded while awaiting headers)');
  const stopTimer = clock.after(ANSWER_TIMEOUT_MS, () => ending.abort(tooLate));
  const leave = () => ending.abort(signal.reason);
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await raced(wholeAnswer(ask, questionOf(path, accept, ending.signal), ending.signal), ending.signal);
  } finally {
    stopTimer();
    signal.removeEventListener('abort', leave);
    // Whatever is still under way has nobody to hear it.
    ending.abort();
  }
}

function questionOf(path: string, accept = 'application/json', signal: AbortSignal): ApiRequest {
  return {
    method: 'GET',
    path,
    query: new URLSearchParams(),
    user: ASKER,
    accept,
    contentType: '',
    userAgent: 'kube-aggregator',
    body: async () => Buffer.alloc(0),
    signal,
  };
}

async function wholeAnswer(ask: Ask, request: ApiRequest, signal: AbortSignal): Promise<ServiceResponse> {
  const response = await ask(request);
  if ('takeOver' in response) throw new UpstreamError('the answer is no document');
  const { status, contentType } = response;
  if ('stream' in response) return { status, contentType, body: await collected(response, signal) };
  const body = Buffer.isBuffer(response.body) ? response.body : Buffer.concat(response.body);
  if (body.length > MAX_DOCUMENT_BYTES) throw tooLong();
  return { status, contentType, body };
}

function collected(response: StreamResponse, signal: AbortSignal): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    // It may write before we have what stops it.
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

const tooLong = () => new UpstreamError(`the answer is larger than ${MAX_DOCUMENT_BYTES} bytes`);
