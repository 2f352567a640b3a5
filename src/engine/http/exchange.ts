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
  UserInfo,
} from '#engine/request/request.ts';
import { UNAUTHENTICATED } from '#engine/auth/groups.ts';
import type { Authenticator, Evidence } from '#engine/auth/authenticate.ts';
import type { BodyBytes, BodyMemory } from '#engine/http/body-memory.ts';
import type { UnreadResponses } from '#engine/http/unread-responses.ts';
import type { ConnectionLimits } from '#engine/http/connection-limits.ts';
import { cutOffError } from '#engine/http/body.ts';
import { addressShare } from '#engine/http/connection-user.ts';
import { shareOf } from '#engine/request/user-share.ts';
import { WATCH_LINGER_MS } from '#engine/request/limits.ts';
import { ApiError, tooManyRequests } from '#kube/api-error.ts';
import type { FairTurns } from '#lib/fair-turns.ts';
import type { Log } from '#lib/log.ts';

type Headers = Readonly<Record<string, string | string[] | undefined>>;

export interface Exchange {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly peer: Evidence['peerCertificate'];
  readonly sourceIp: string | undefined;
  /** The raw socket. */
  readonly connection: object;
  /** Sent with the response. */
  readonly auditId: string;
  /** True if the client has closed the connection, so that no response can be sent. */
  readonly isClosed: boolean;
  /** The protocol that the client wants to upgrade the connection to, if any. */
  readonly upgrade?: string | undefined;
  /** Reads the body; its bytes are added to the account. */
  body(account: BodyBytes): Promise<Buffer>;
  bodyStream(): Readable;
  /** Notes that the user is known, so that the client may send more at once. */
  trust(): void;
  /** Allowed only if `upgrade` was requested. */
  takeOver?(response: UpgradeResponse): void;
  onClose(fn: () => void): void;
  /** Sends a response. Returns a function whose result changes when the client accepts more of it. */
  respond(status: number, headers: Record<string, string | string[]>, body: readonly Buffer[]): () => number;
  /** Gives up a response that nobody reads. */
  cut(): void;
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
  /** Divides the time of the server between users. */
  readonly turns: FairTurns;
  readonly bodies: BodyMemory;
  readonly connections: ConnectionLimits;
  readonly unread: UnreadResponses;
}

/** The usual time of a request without a body, in units of lib/fair-turns.ts. */
const REQUEST_UNITS = 512;

const NO_QUERY = new URLSearchParams();

export function serve(exchange: Exchange, options: ServeOptions): void {
  const failed = (error: unknown) => {
    options.log.error({ err: error, method: exchange.method, url: exchange.url }, 'Cannot send a response');
  };
  exchange.onClose(options.connections.beginRequest(exchange.connection));
  try {
    const response = hasCheapCredentials(exchange, options)
      ? respond(exchange, options)
      : inTurn(exchange, options, { share: unknownShare(exchange), isAnonymous: true }, () =>
          respond(exchange, options, { isCharged: true }),
        );
    if (response instanceof Promise) response.then((late) => deliver(exchange, late, options)).catch(failed);
    else deliver(exchange, response, options);
  } catch (error) {
    failed(error);
  }
}

/** Probes must be answered when the server is busy. */
const PROBES = /^\/(livez|readyz|healthz)\b/;

/**
 * Reports whether it takes no time to find out who sent the request. Verifying a token takes time: until one is valid, the
 * requests of an address share it, so that the invalid ones of others do not delay those of users elsewhere.
 */
function hasCheapCredentials({ peer, connection }: Exchange, { connections }: ServeOptions): boolean {
  return typeof peer === 'object' || connections.isTrusted(connection);
}

/** Returns the share of a request whose user is not known. */
function unknownShare({ url, headers, sourceIp }: Exchange): string {
  const share = addressShare(sourceIp);
  return headers['authorization'] === undefined && PROBES.test(url) ? `probes of ${share}` : share;
}

/**
 * Runs a step in a turn of the share. Without a user, the connections of an address take turns with each other, so that a
 * user at the same address waits for one request of each of them at most.
 */
function inTurn(
  exchange: Exchange,
  { turns }: ServeOptions,
  { share, isAnonymous }: { readonly share: string; readonly isAnonymous: boolean },
  run: () => ApiResponse | Promise<ApiResponse>,
): ApiResponse | Promise<ApiResponse> {
  const turn = turns.enter(share, REQUEST_UNITS, isAnonymous ? exchange.connection : undefined);
  if (turn === undefined) return run();
  if (turn === 'full') return TOO_MANY_REQUESTS;
  // A client that left while it waited gets no answer.
  return turn.then(() => (exchange.isClosed ? TOO_MANY_REQUESTS : run()));
}

function respond(
  exchange: Exchange,
  options: ServeOptions,
  { isCharged = false } = {},
): ApiResponse | Promise<ApiResponse> {
  const { handler, onUnauthenticated, connections } = options;
  let request: ApiRequest;
  let share: string;
  let isAnonymous: boolean;
  try {
    const user = options.authenticate({
      peerCertificate: exchange.peer,
      authorization: text(exchange.headers['authorization']) || undefined,
    });
    isAnonymous = user.groups.includes(UNAUTHENTICATED);
    share = isAnonymous ? addressShare(exchange.sourceIp) : shareOf(user);
    if (!isAnonymous) {
      connections.identify(exchange.connection, share);
      exchange.trust();
    }
    request = parseRequest(exchange, user, () => readBody(exchange, share, options));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    connections.suspect(exchange.connection);
    const { method, url, headers, sourceIp, auditId } = exchange;
    onUnauthenticated?.({ method, url, userAgent: text(headers['user-agent']), sourceIp, auditId, error });
    const body = Buffer.from(JSON.stringify(error.toStatus()));
    return { status: error.code, contentType: 'application/json', body };
  }
  if (isAnonymous && isCharged) return handler(request);
  const asked = PROBES.test(exchange.url) ? `probes of ${share}` : share;
  return inTurn(exchange, options, { share: asked, isAnonymous }, () => handler(request));
}

/** Reads the body in the turn in which it may be handled. */
async function readBody(exchange: Exchange, share: string, { bodies, turns }: ServeOptions): Promise<Buffer> {
  // Nothing would end the account of a request that is over.
  if (exchange.isClosed) throw cutOffError();
  const account = bodies.open(share);
  exchange.onClose(() => account.close());
  const bytes = await exchange.body(account);
  const turn = turns.enter(share, bytes.length);
  if (turn === 'full') throw tooManyRequests(WAITING_TOO_LONG, 1);
  if (turn !== undefined) await turn;
  return bytes;
}

const WAITING_TOO_LONG = 'too many requests of this user are waiting; try again later';

const TOO_MANY_REQUESTS: BytesResponse = {
  status: 429,
  contentType: 'application/json',
  headers: { 'retry-after': '1' },
  body: Buffer.from(JSON.stringify(tooManyRequests(WAITING_TOO_LONG, 1).toStatus())),
};

function deliver(exchange: Exchange, response: ApiResponse, { streams, unread }: ServeOptions): void {
  if (exchange.isClosed) return;
  if ('stream' in response) sendStream(exchange, response, streams);
  else if (!('takeOver' in response)) send(exchange, response, unread);
  else if (exchange.takeOver !== undefined) exchange.takeOver(response);
  else send(exchange, UPGRADE_REQUIRED, unread);
}

/** The response upgrades the connection, but the client did not offer that. */
const UPGRADE_REQUIRED: BytesResponse = {
  status: 400,
  contentType: 'text/plain; charset=utf-8',
  body: Buffer.from('Upgrade request required\n'),
};

function parseRequest(exchange: Exchange, user: UserInfo, body: () => Promise<Buffer>): ApiRequest {
  const { url, headers } = exchange;
  const mark = url.indexOf('?');
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
    body,
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

function send(exchange: Exchange, response: BytesResponse, unread: UnreadResponses): void {
  const { status, body } = response;
  const progress = exchange.respond(status, headersOf(response), Buffer.isBuffer(body) ? [body] : body);
  exchange.onClose(unread.add(progress, () => exchange.cut()));
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
