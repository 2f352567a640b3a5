/**
 * Our webhook and our aggregated API behind HTTPS, on one port. Reviews come from whoever reaches the port, as API servers
 * show webhooks no certificate unless told to; the aggregated API believes only who the API server says it is.
 * Certificates are exchanged while it listens: connections that are open stay.
 */
import { once } from 'node:events';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError, badRequest, internalError, methodNotAllowed } from '#kube/api-error.ts';
import { splitTarget, type RequestTarget } from '#kube/request-target.ts';
import type { Log } from '#lib/log.ts';
import { BodyBudget, type BodyLimits } from '#plane/cluster/body-budget.ts';
import type { FrontProxy } from '#plane/cluster/front-proxy.ts';
import type { Webhook } from '#plane/webhook.ts';
import type { BytesAnswer, SubresourceHandler, SubresourceRequest } from '#subresources/http-types.ts';

const MAX_CONNECTIONS = 4000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than API servers keep a connection that nobody uses (90 s): closed by us first, a review on its way would be lost. */
const KEEP_ALIVE_MS = 120_000;
/** A review has an object as it is and as it was. */
const BODY_LIMITS: BodyLimits = { oneBytes: 16 * 1024 * 1024, allBytes: 256 * 1024 * 1024 };
/** For requests under way when it stops. */
const STOP_GRACE_MS = 2000;

export interface ServingIdentity {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface HttpsServicesOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly identity: ServingIdentity;
  readonly frontProxy: FrontProxy;
  readonly webhook: Webhook;
  readonly api: SubresourceHandler;
  /** Why it is not ready; undefined = it is. */
  notReady(): string | undefined;
  metricsText(): string;
  readonly bodies?: BodyLimits;
  readonly log: Log;
}

export interface HttpsServices {
  readonly port: number;
  /** From now on, for new connections. */
  renew(identity: ServingIdentity, frontProxy: FrontProxy): void;
  stop(): Promise<void>;
}

/** Rejects where it cannot listen. */
export async function startHttpsServices(options: HttpsServicesOptions): Promise<HttpsServices> {
  let { frontProxy } = options;
  const tlsOf = ({ certPem, keyPem }: ServingIdentity) =>
    ({ cert: certPem, key: keyPem, ca: frontProxy.ca, minVersion: 'TLSv1.2' }) as const;
  const server = createServer({
    ...tlsOf(options.identity),
    requestCert: true,
    rejectUnauthorized: false,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const sockets = new Set<Duplex>();
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const budget = new BodyBudget(options.bodies ?? BODY_LIMITS);
  server.on('request', (request, response) => {
    void answer(options, frontProxy, { request, response, body: () => budget.read(request, response) });
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    void upgrade(options, frontProxy, request, { socket, head });
  });
  server.listen(options.port, options.host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    renew(identity, proxy) {
      frontProxy = proxy;
      server.setSecureContext(tlsOf(identity));
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeIdleConnections();
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, STOP_GRACE_MS);
      await closed;
      clearTimeout(cut);
    },
  };
}

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  body(): Promise<Buffer>;
}

async function answer(options: HttpsServicesOptions, frontProxy: FrontProxy, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  try {
    const { status, contentType, body } = await answerOf(options, frontProxy, exchange);
    response.writeHead(status, { 'content-type': contentType, 'content-length': body.length }).end(body);
  } catch (error) {
    const { status, contentType, body } = errorAnswer(options, request, error);
    request.resume();
    if (response.headersSent) response.destroy();
    else response.writeHead(status, { 'content-type': contentType }).end(body);
  }
}

async function answerOf(
  options: HttpsServicesOptions,
  frontProxy: FrontProxy,
  { request, response, body }: Exchange,
): Promise<BytesAnswer> {
  const { path } = targetOf(request);
  if (path === '/livez' || path === '/healthz') return text(200, 'ok');
  if (path === '/readyz') return readiness(options);
  if (path === '/metrics') return metrics(options, request);
  if (path.startsWith('/apis')) {
    const ending = new AbortController();
    response.once('close', () => ending.abort());
    const answered = await options.api({ ...apiRequest(frontProxy, request, ending.signal), body });
    if ('takeOver' in answered) throw internalError('a stream was opened for a request that did not ask for one');
    return answered;
  }
  if (request.method !== 'POST') throw methodNotAllowed();
  const sent = (await body()).toString('utf8');
  const reviewed = await options.webhook.review(path, parsed(sent));
  return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(reviewed)) };
}

function readiness({ notReady }: HttpsServicesOptions): BytesAnswer {
  const why = notReady();
  return why === undefined ? text(200, 'ok') : text(503, why);
}

/** For whoever is on this machine. */
function metrics({ metricsText }: HttpsServicesOptions, { socket }: IncomingMessage): BytesAnswer {
  const from = socket.remoteAddress ?? '';
  if (!/^(?:::ffff:)?127\.|^::1$/.test(from)) throw new ApiError(403, 'Forbidden', 'metrics are for this machine only');
  return { ...text(200, metricsText()), contentType: 'text/plain; version=0.0.4; charset=utf-8' };
}

async function upgrade(
  options: HttpsServicesOptions,
  frontProxy: FrontProxy,
  request: IncomingMessage,
  { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
): Promise<void> {
  const ending = new AbortController();
  const onClose = () => ending.abort();
  socket.once('close', onClose);
  let answered: BytesAnswer;
  try {
    const result = await options.api(apiRequest(frontProxy, request, ending.signal));
    if ('takeOver' in result) {
      socket.off('close', onClose);
      result.takeOver(socket, head);
      return;
    }
    answered = result;
  } catch (error) {
    answered = errorAnswer(options, request, error);
  }
  const { status, contentType, body } = answered;
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    `Content-Type: ${contentType}`,
    `Content-Length: ${body.length}`,
    'Connection: close',
  ];
  socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
}

function apiRequest(frontProxy: FrontProxy, request: IncomingMessage, signal: AbortSignal): SubresourceRequest {
  const user = believed(frontProxy, request);
  return {
    method: request.method ?? '',
    ...targetOf(request),
    user,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(', ') : value;
    },
    body: async () => Buffer.alloc(0),
    upgrade: request.headers.upgrade,
    signal,
  };
}

/** For whom the API server asks. Throws ApiError where it is not the API server who asks. */
function believed({ names, userHeaders, groupHeaders }: FrontProxy, request: IncomingMessage) {
  const socket = request.socket as TLSSocket;
  const name = socket.authorized ? socket.getPeerCertificate().subject?.CN : undefined;
  const isProxy = typeof name === 'string' && (names.length === 0 || names.includes(name));
  const user = first(request, userHeaders);
  if (!isProxy || user === undefined) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  const groups = groupHeaders.flatMap((header) => valuesOf(request, header));
  return { name: user, groups };
}

function first(request: IncomingMessage, headers: readonly string[]): string | undefined {
  return headers.flatMap((header) => valuesOf(request, header))[0];
}

/** Node joins repeated headers by commas, which names of groups may have. Bytes are UTF-8. */
function valuesOf({ rawHeaders }: IncomingMessage, header: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== header) continue;
    values.push(Buffer.from(rawHeaders[i + 1] ?? '', 'latin1').toString('utf8'));
  }
  return values;
}

/** As it came: the API server has decided on that path who may ask. */
function targetOf({ url = '/' }: IncomingMessage): RequestTarget {
  const target = splitTarget(url);
  if (target === undefined) throw badRequest('the path cannot be read');
  return target;
}

function parsed(sent: string): unknown {
  try {
    return JSON.parse(sent);
  } catch {
    throw badRequest('the body is not JSON');
  }
}

function text(status: number, words: string): BytesAnswer {
  return { status, contentType: 'text/plain; charset=utf-8', body: Buffer.from(words) };
}

function errorAnswer({ log }: HttpsServicesOptions, { method, url }: IncomingMessage, error: unknown): BytesAnswer {
  const told = error instanceof ApiError ? error : internalError((error as Error).message, error);
  if (told.code >= 500) log.warn({ err: error, method, url }, 'Cannot answer the API server');
  return { status: told.code, contentType: 'application/json', body: Buffer.from(JSON.stringify(told.toStatus())) };
}
