/** One request and its response, for both HTTP/1.1 and HTTP/2. */
import type { Readable, Writable } from 'node:stream';
import type {
  UnauthenticatedRequest,
  ApiHandler,
  ApiRequest,
  ApiResponse,
  BytesResponse,
  StreamResponse,
  StreamSink,
  UpgradeResponse,
} from '#engine/request/request.ts';
import type { Authenticator, Evidence } from '#engine/auth/authenticate.ts';
import { WATCH_LINGER_MS } from '#engine/request/limits.ts';
import { ApiError } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly peer: Evidence['peerCertificate'];
  readonly sourceIp: string | undefined;
  /** Sent with the response. */
  readonly auditId: string;
  /** True if the client has closed the connection, so that no response can be sent. */
  readonly isClosed: boolean;
  /** The protocol that the client wants to upgrade the connection to, if any. */
  readonly upgrade?: string | undefined;
  body(): Promise<Buffer>;
  bodyStream(): Readable;
  /** Allowed only if `upgrade` was requested. */
  takeOver?(response: UpgradeResponse): void;
  onClose(fn: () => void): void;
  respond(status: number, headers: Record<string, string | string[]>, body: readonly Buffer[]): void;
  startStream(headers: Record<string, string | string[]>): Writable;
}

interface ServeOptions {
  /** Open streaming responses; stopping the server ends them. */
  readonly streams: Set<Writable>;
  readonly handler: ApiHandler;
  readonly authenticate: Authenticator;
  /** Called for requests whose credentials are invalid. */
  onUnauthenticated?(request: UnauthenticatedRequest): void;
  readonly log: Log;
}

const NO_QUERY = new URLSearchParams();

export function serve(exchange: Exchange, options: ServeOptions): void {
  const failed = (error: unknown) => {
    options.log.error({ err: error, method: exchange.method, url: exchange.url }, 'Cannot send a response');
  };
  try {
    const response = respond(exchange, options);
    if (response instanceof Promise) response.then((late) => deliver(exchange, late, options)).catch(failed);
    else deliver(exchange, response, options);
  } catch (error) {
    failed(error);
  }
}

function respond(
  exchange: Exchange,
  { handler, authenticate, onUnauthenticated }: ServeOptions,
): ApiResponse | Promise<ApiResponse> {
  let request: ApiRequest;
  try {
    request = parseRequest(exchange, authenticate);
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const { method, url, headers, sourceIp, auditId } = exchange;
    onUnauthenticated?.({ method, url, userAgent: text(headers['user-agent']), sourceIp, auditId, error });
    const body = Buffer.from(JSON.stringify(error.toStatus()));
    return { status: error.code, contentType: 'application/json', body };
  }
  return handler(request);
}

function deliver(exchange: Exchange, response: ApiResponse, { streams }: ServeOptions): void {
  if (exchange.isClosed) return;
  if ('stream' in response) sendStream(exchange, response, streams);
  else if (!('takeOver' in response)) send(exchange, response);
  else if (exchange.takeOver !== undefined) exchange.takeOver(response);
  else send(exchange, UPGRADE_REQUIRED);
}

/** The response upgrades the connection, but the client did not offer that. */
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
    // Created lazily: few requests use it.
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
    // The response has begun, so there is no other way to report the error.
    stream.destroy();
    throw error;
  }
}

function headersOf({
  contentType,
  headers,
  warnings,
}: BytesResponse | StreamResponse): Record<string, string | string[]> {
  const warningHeaders =
    warnings === undefined || warnings.length === 0 ? undefined : { warning: warnings.map(warningHeader) };
  return { 'cache-control': 'no-cache, private', 'content-type': contentType, ...headers, ...warningHeaders };
}

/** `cut` aborts a response so that the client sees that it is incomplete (remote/relay-response.ts). */
function sinkOf(stream: Writable): StreamSink & { cut(): void } {
  return {
    cut() {
      // HTTP/2 would treat a close without an error as an end; HTTP/1.1 would treat an error as a malformed request.
      stream.destroy('rstCode' in stream ? new Error('the response was cut off') : undefined);
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
      // A client that does not read must not hold memory.
      const timer = setTimeout(() => stream.destroy(), WATCH_LINGER_MS);
      stream.once('close', () => clearTimeout(timer));
      timer.unref();
    },
  };
}

/** Formats a warning (RFC 7234): code, agent, quoted text. Header values must be one line of ASCII. */
function warningHeader(message: string): string {
  const line = message.replace(/[^\x20-\x7e]/g, ' ').slice(0, 2048);
  return `299 - "${line.replace(/(["\\])/g, '\\$1')}"`;
}
