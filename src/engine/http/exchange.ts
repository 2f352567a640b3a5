/** One request and its answer, the same for HTTP/1.1 and HTTP/2. */
import type { Readable, Writable } from 'node:stream';
import type { Turned } from '#engine/audit/unauthenticated.ts';
import type { Authenticator, Evidence } from '#engine/auth/authenticate.ts';
import type {
  ApiHandler,
  ApiRequest,
  ApiResponse,
  BytesResponse,
  StreamResponse,
  StreamSink,
  UpgradeResponse,
} from '#engine/request.ts';
import { WATCH_LINGER_MS } from '#engine/limits.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly peer: Evidence['peerCertificate'];
  readonly sourceIp: string | undefined;
  /** Goes out with the answer. */
  readonly auditId: string;
  /** The other side has left; nothing can be answered any more. */
  readonly gone: boolean;
  /** Whether, and to what, the client wants to change the connection. */
  readonly upgrade?: string | undefined;
  body(): Promise<Buffer>;
  bodyStream(): Readable;
  /** Only after `upgrade` was asked for. */
  takeOver?(response: UpgradeResponse): void;
  onClose(fn: () => void): void;
  respond(status: number, headers: Record<string, string | string[]>, body: readonly Buffer[]): void;
  startStream(headers: Record<string, string | string[]>): Writable;
}

export interface Serving {
  /** Answers without an end that are open now; who stops the server ends them. */
  readonly streams: Set<Writable>;
  readonly handler: ApiHandler;
  readonly authenticate: Authenticator;
  /** Is told of requests whose proof of identity failed. */
  turnedAway?(turned: Turned): void;
  readonly log: Log;
}

const NO_QUERY = new URLSearchParams();

export function serve(exchange: Exchange, serving: Serving): void {
  const failed = (error: unknown) => {
    serving.log.error({ err: error, method: exchange.method, url: exchange.url }, 'answer failed');
  };
  try {
    const response = answer(exchange, serving);
    if (response instanceof Promise) response.then((late) => deliver(exchange, late, serving)).catch(failed);
    else deliver(exchange, response, serving);
  } catch (error) {
    failed(error);
  }
}

function answer(
  exchange: Exchange,
  { handler, authenticate, turnedAway }: Serving,
): ApiResponse | Promise<ApiResponse> {
  let request: ApiRequest;
  try {
    request = parseRequest(exchange, authenticate);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { method, url, headers, sourceIp, auditId } = exchange;
    turnedAway?.({ method, url, userAgent: text(headers['user-agent']), sourceIp, auditId, error });
    const body = Buffer.from(JSON.stringify(error.toStatus()));
    return { status: error.code, contentType: 'application/json', body };
  }
  return handler(request);
}

function deliver(exchange: Exchange, response: ApiResponse, { streams }: Serving): void {
  if (exchange.gone) return;
  if ('stream' in response) sendStream(exchange, response, streams);
  else if (!('takeOver' in response)) send(exchange, response);
  else if (exchange.takeOver !== undefined) exchange.takeOver(response);
  else send(exchange, UPGRADE_REQUIRED);
}

/** Whoever answers wants to leave HTTP, and the client has not offered it. */
const UPGRADE_REQUIRED: BytesResponse = {
  status: 400,
  contentType: 'text/plain; charset=utf-8',
  body: Buffer.from('Upgrade request required\n'),
};

function parseRequest(exchange: Exchange, authenticate: Authenticator): ApiRequest {
  const { url, headers } = exchange;
  const mark = url.indexOf('?');
  const user = authenticate({
    peerCertificate: exchange.peer,
    authorization: text(headers['authorization']) || undefined,
  });
  let aborting: AbortController | undefined;
  return {
    method: exchange.method,
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? NO_QUERY : new URLSearchParams(url.slice(mark + 1)),
    user,
    accept: text(headers['accept']),
    contentType: text(headers['content-type']),
    userAgent: text(headers['user-agent']),
    sourceIp: exchange.sourceIp,
    auditId: exchange.auditId,
    header: (name) => text(headers[name]) || undefined,
    headerNames: () => Object.keys(headers),
    body: () => exchange.body(),
    bodyStream: () => exchange.bodyStream(),
    upgrade: exchange.upgrade,
    // Few requests ever look at it, and it is not free.
    get signal() {
      if (aborting === undefined) {
        const controller = (aborting = new AbortController());
        exchange.onClose(() => controller.abort());
      }
      return aborting.signal;
    },
  };
}

function text(header: string | string[] | undefined): string {
  return header === undefined ? '' : Array.isArray(header) ? header.join(',') : header;
}

function send(exchange: Exchange, response: BytesResponse): void {
  const { status, body } = response;
  exchange.respond(status, headersOf(response), Buffer.isBuffer(body) ? [body] : body);
}

function sendStream(exchange: Exchange, response: StreamResponse, streams: Set<Writable>): void {
  const stream = exchange.startStream(headersOf(response));
  streams.add(stream);
  exchange.onClose(() => streams.delete(stream));
  try {
    exchange.onClose(response.stream(sinkOf(stream)));
  } catch (error) {
    // The answer has begun, so that there is no other way left to tell.
    stream.destroy();
    throw error;
  }
}

function headersOf({
  contentType,
  headers,
  warnings,
}: BytesResponse | StreamResponse): Record<string, string | string[]> {
  const told = warnings === undefined || warnings.length === 0 ? undefined : { warning: warnings.map(warningHeader) };
  return { 'cache-control': 'no-cache, private', 'content-type': contentType, ...headers, ...told };
}

/** `cut` ends an answer so that the client sees that something is missing (remote/relay-answer.ts). */
function sinkOf(stream: Writable): StreamSink & { cut(): void } {
  return {
    cut() {
      // HTTP/2 would take a close without a reason for an end; HTTP/1.1 would take a reason for a malformed request.
      stream.destroy('rstCode' in stream ? new Error('the answer broke off') : undefined);
    },
    write(chunk) {
      if (!stream.destroyed && !stream.writableEnded) stream.write(chunk);
    },
    get bufferedBytes() {
      return stream.writableLength;
    },
    onDrain(fn) {
      if (stream.writableLength === 0) setImmediate(fn);
      else stream.once('drain', fn);
    },
    end() {
      if (stream.destroyed) return;
      stream.end();
      // Who does not read must not keep our memory.
      const timer = setTimeout(() => stream.destroy(), WATCH_LINGER_MS);
      stream.once('close', () => clearTimeout(timer));
      timer.unref();
    },
  };
}

/** RFC 7234: code, agent, quoted text; header values must stay on one line of ASCII. */
function warningHeader(message: string): string {
  const line = message.replace(/[^\x20-\x7e]/g, ' ').slice(0, 2048);
  return `299 - "${line.replace(/(["\\])/g, '\\$1')}"`;
}
