/**
 * Serves our webhook and our aggregated API over HTTPS, on one port. Reviews are accepted from any client, because API
 * servers present no certificate to webhooks by default; the aggregated API only trusts users whom the API server has
 * authenticated. Certificates can be renewed while it listens; open connections stay.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError, badRequest, internalError, methodNotAllowed } from '#kube/api-error.ts';
import { splitTarget, type RequestTarget } from '#kube/request-target.ts';
import { refuseUpgrade } from '#lib/https/refuse-upgrade.ts';
import type { Log } from '#lib/log.ts';
import { METRICS_CONTENT_TYPE } from '#lib/metrics/metric-registry.ts';
import { BodyBudget, type BodyLimits } from '#plane/cluster/body-budget.ts';
import type { FrontProxy } from '#plane/cluster/front-proxy.ts';
import type { Webhook } from '#plane/components/webhook.ts';
import type { SubresourceBytes, SubresourceHandler, SubresourceRequest } from '#subresources/http-types.ts';

const MAX_CONNECTIONS = 4000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than API servers keep an idle connection (90 s): if we closed it first, a review in transit would be lost. */
const KEEP_ALIVE_MS = 120_000;
/** A review has the new and the old object. */
const BODY_LIMITS: BodyLimits = { oneBytes: 16 * 1024 * 1024, allBytes: 256 * 1024 * 1024 };
/** Time for requests in progress at the stop. */
const STOP_GRACE_MS = 2000;

interface ServingIdentity {
  readonly certPem: string;
  readonly keyPem: string;
}

interface HttpsServicesOptions {
  readonly host: string;
  /** 0 selects a free port. */
  readonly port: number;
  readonly identity: ServingIdentity;
  readonly frontProxy: FrontProxy;
  readonly webhook: Webhook;
  readonly api: SubresourceHandler;
  /** Returns why the services are not ready, or undefined if they are. */
  checkReady(): string | undefined;
  metricsText(): string;
  readonly bodies?: BodyLimits;
  readonly log: Log;
}

export interface HttpsServices {
  readonly port: number;
  /** Changes the certificates for new connections. */
  renew(identity: ServingIdentity, frontProxy: FrontProxy): void;
  stop(): Promise<void>;
}

/** Rejects if it cannot listen. */
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
    void respond(options, frontProxy, { request, response, body: () => budget.read(request, response) });
  });
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    void handleUpgrade(options, frontProxy, request, { socket, head });
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

async function respond(options: HttpsServicesOptions, frontProxy: FrontProxy, exchange: Exchange): Promise<void> {
  const { request, response } = exchange;
  try {
    const { status, contentType, body } = await handleRequest(options, frontProxy, exchange);
    response.writeHead(status, { 'content-type': contentType, 'content-length': body.length }).end(body);
  } catch (error) {
    const { status, contentType, body } = errorAnswer(options, request, error);
    request.resume();
    if (response.headersSent) response.destroy();
    else response.writeHead(status, { 'content-type': contentType }).end(body);
  }
}

async function handleRequest(
  options: HttpsServicesOptions,
  frontProxy: FrontProxy,
  { request, response, body }: Exchange,
): Promise<SubresourceBytes> {
  const { path } = targetOf(request);
  if (path === '/livez' || path === '/healthz') return textAnswer(200, 'ok');
  if (path === '/readyz') return readinessAnswer(options);
  if (path === '/metrics') return metricsAnswer(options, request);
  if (path.startsWith('/apis')) {
    const ending = new AbortController();
    response.once('close', () => ending.abort());
    const answered = await options.api({ ...apiRequest(frontProxy, request, ending.signal), body });
    if ('takeOver' in answered) throw internalError('a stream was opened for a request without an upgrade');
    return answered;
  }
  if (request.method !== 'POST') throw methodNotAllowed();
  const sent = (await body()).toString('utf8');
  const reviewed = await options.webhook.review(path, parseJsonBody(sent));
  return { status: 200, contentType: 'application/json', body: Buffer.from(JSON.stringify(reviewed)) };
}

function readinessAnswer({ checkReady }: HttpsServicesOptions): SubresourceBytes {
  const why = checkReady();
  return why === undefined ? textAnswer(200, 'ok') : textAnswer(503, why);
}

/** Serves metrics to clients on this machine only. */
function metricsAnswer({ metricsText }: HttpsServicesOptions, { socket }: IncomingMessage): SubresourceBytes {
  const from = socket.remoteAddress ?? '';
  if (!/^(?:::ffff:)?127\.|^::1$/.test(from))
    throw new ApiError(403, 'Forbidden', 'metrics are available on this machine only');
  return { ...textAnswer(200, metricsText()), contentType: METRICS_CONTENT_TYPE };
}

async function handleUpgrade(
  options: HttpsServicesOptions,
  frontProxy: FrontProxy,
  request: IncomingMessage,
  { socket, head }: { readonly socket: Duplex; readonly head: Buffer },
): Promise<void> {
  const ending = new AbortController();
  const onClose = () => ending.abort();
  socket.once('close', onClose);
  try {
    const result = await options.api(apiRequest(frontProxy, request, ending.signal));
    if ('takeOver' in result) {
      socket.off('close', onClose);
      result.takeOver(socket, head);
    } else {
      refuseUpgrade(socket, result);
    }
  } catch (error) {
    refuseUpgrade(socket, errorAnswer(options, request, error));
  }
}

function apiRequest(frontProxy: FrontProxy, request: IncomingMessage, signal: AbortSignal): SubresourceRequest {
  const user = authenticatedUser(frontProxy, request);
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

/** Returns the user for whom the API server asks. Throws ApiError if the client is not the API server. */
function authenticatedUser({ names, userHeaders, groupHeaders }: FrontProxy, request: IncomingMessage) {
  const socket = request.socket as TLSSocket;
  const name = socket.authorized ? socket.getPeerCertificate().subject?.CN : undefined;
  const isProxy = typeof name === 'string' && (names.length === 0 || names.includes(name));
  const user = firstHeaderValue(request, userHeaders);
  if (!isProxy || user === undefined) throw new ApiError(401, 'Unauthorized', 'Unauthorized');
  const groups = groupHeaders.flatMap((header) => headerValues(request, header));
  return { name: user, groups };
}

function firstHeaderValue(request: IncomingMessage, headers: readonly string[]): string | undefined {
  return headers.flatMap((header) => headerValues(request, header))[0];
}

/** Returns all values of a header. Node.js joins them with commas, which group names may contain. Bytes are UTF-8. */
function headerValues({ rawHeaders }: IncomingMessage, header: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== header) continue;
    values.push(Buffer.from(rawHeaders[i + 1] ?? '', 'latin1').toString('utf8'));
  }
  return values;
}

/** Returns the target as sent, not normalized: the API server authorized exactly this path. */
function targetOf({ url = '/' }: IncomingMessage): RequestTarget {
  const target = splitTarget(url);
  if (target === undefined) throw badRequest('the path is invalid');
  return target;
}

function parseJsonBody(sent: string): unknown {
  try {
    return JSON.parse(sent);
  } catch {
    throw badRequest('the body is not JSON');
  }
}

function textAnswer(status: number, words: string): SubresourceBytes {
  return { status, contentType: 'text/plain; charset=utf-8', body: Buffer.from(words) };
}

function errorAnswer(
  { log }: HttpsServicesOptions,
  { method, url }: IncomingMessage,
  error: unknown,
): SubresourceBytes {
  const apiError = error instanceof ApiError ? error : internalError((error as Error).message, error);
  if (apiError.code >= 500) log.warn({ err: error, method, url }, 'Cannot serve a request of the API server');
  return {
    status: apiError.code,
    contentType: 'application/json',
    body: Buffer.from(JSON.stringify(apiError.toStatus())),
  };
}
