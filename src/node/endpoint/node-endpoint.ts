/**
 * The HTTPS server of a node agent: logs for the API server; verbs, consoles, displays, ports and disks for the subresources
 * API; the host API for its own clients; migrations for other nodes. Clients need a certificate of the CA, and peer.ts
 * decides what each of them may do. Errors are sent as Status objects.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError, badRequest, internalError, methodNotAllowed } from '#kube/api-error.ts';
import { nodeOfUser } from '#kube/node-user.ts';
import { splitTarget } from '#kube/request-target.ts';
import type { Clock } from '#lib/clock.ts';
import { refuseUpgrade } from '#lib/https/refuse-upgrade.ts';
import type { Log } from '#lib/log.ts';
import type { UpgradeRequest } from '#lib/websocket/websocket-handshake.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { parseContainerLogOptions } from '#node/endpoint/log-options.ts';
import { LOG_READER, refuseRequest } from '#node/endpoint/peer.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import { parseEndpointPath, type EndpointRoute } from '#node/endpoint/route.ts';
import { readBodyUpTo } from '#node/endpoint/read-body-up-to.ts';
import { serveConsole } from '#node/endpoint/serve-console.ts';
import { serveDisk } from '#node/endpoint/serve-disk.ts';
import { serveScreenshot, serveVnc } from '#node/endpoint/serve-display.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';
import { serveMigration } from '#node/endpoint/serve-migration.ts';
import { serveLogs } from '#node/endpoint/serve-logs.ts';
import { servePort } from '#node/endpoint/serve-port.ts';
import { serveGuest, serveVerb } from '#node/endpoint/serve-verb.ts';
import { Sessions } from '#node/endpoint/sessions.ts';

const MAX_CONNECTIONS = 2000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
const MAX_BODY_BYTES = 4 * 1024 * 1024;

interface NodeEndpointOptions {
  readonly host: string;
  /** 0 chooses a free port. */
  readonly port: number;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /** Authority of the clients. */
  readonly ca: string;
  /** PEM; authority of the API server, if it differs from that of the other clients. */
  readonly logReaderCa?: string | undefined;
  readonly agent: EndpointAgent;
  readonly log: Log;
  readonly clock: Clock;
}

/** Certificate, key and authority in PEM. */
interface EndpointIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

interface RunningEndpoint {
  readonly port: number;
  /** Replaces the identity for new connections. */
  renew(identity: EndpointIdentity): void;
  /** Closes all connections. Guests are not affected. */
  stop(): Promise<void>;
}

/** Starts the server. Rejects if it cannot listen. */
export async function startNodeEndpoint(options: NodeEndpointOptions): Promise<RunningEndpoint> {
  const { host, port, logReaderCa } = options;
  const tlsOf = ({ cert, key, ca }: EndpointIdentity) =>
    ({ cert, key, ca: logReaderCa === undefined ? ca : [ca, logReaderCa], minVersion: 'TLSv1.2' }) as const;
  let { ca } = options;
  const server = createServer({
    ...tlsOf(options),
    requestCert: true,
    rejectUnauthorized: true,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
  });
  server.maxConnections = MAX_CONNECTIONS;
  const sockets = new Set<Duplex>();
  const open: OpenSessions = { consoles: new Sessions(), displays: new Sessions() };
  // Tracked before TLS, because a silent connection would prevent the server from stopping.
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => void handleRequest({ ...options, ca }, request, response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    void handleUpgrade({ ...options, ca }, open, { request, socket, head });
  });
  server.listen(port, host);
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    renew(identity) {
      ({ ca } = identity);
      server.setSecureContext(tlsOf(identity));
    },
    async stop() {
      const closed = once(server, 'close');
      server.close();
      for (const socket of sockets) socket.destroy();
      await closed;
    },
  };
}

async function handleRequest(
  options: NodeEndpointOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  try {
    const { query, route } = admitRequest(options, request);
    if (route.kind === 'host') return await handleHostRequest(options, request, route, response);
    // All other requests ignore the body.
    request.resume();
    await serve(options, request.method ?? '', query, route, response);
  } catch (error) {
    const apiError = toResponseError(options, request, error);
    request.resume();
    if (response.headersSent) response.destroy();
    else
      response
        .writeHead(apiError.code, { 'content-type': 'application/json' })
        .end(JSON.stringify(apiError.toStatus()));
  }
}

async function serve(
  { agent, clock }: NodeEndpointOptions,
  method: string,
  query: URLSearchParams,
  route: Exclude<EndpointRoute, { kind: 'host' }>,
  response: ServerResponse,
): Promise<void> {
  switch (route.kind) {
    case 'healthz':
      expectMethod(method, 'GET');
      response.writeHead(200, { 'content-type': 'text/plain' }).end('ok');
      return;
    case 'logs':
      expectMethod(method, 'GET');
      return await serveLogs(agent, route, parseContainerLogOptions(query, clock.now()), response);
    case 'verb':
      expectMethod(method, 'PUT');
      await serveVerb(agent, route, query);
      response.writeHead(200).end();
      return;
    case 'guest': {
      expectMethod(method, 'GET');
      const text = JSON.stringify(await serveGuest(agent, route));
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
      return;
    }
    case 'screenshot': {
      expectMethod(method, 'GET');
      const picture = await serveScreenshot(agent, route, query);
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': picture.length }).end(picture);
      return;
    }
    case 'console':
    case 'vnc':
    case 'port':
      expectMethod(method, 'GET');
      throw badRequest(`a ${route.kind} is a WebSocket; the request does not ask to upgrade to one`);
    case 'disk':
      expectMethod(method, 'GET');
      throw badRequest('the content of a disk is a WebSocket; the request does not ask to upgrade to one');
    case 'migrations':
      expectMethod(method, 'GET');
      throw badRequest('a migration is a stream; the request does not ask to upgrade to one');
    case 'unknown':
      throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
  }
}

async function handleHostRequest(
  { agent }: NodeEndpointOptions,
  request: IncomingMessage,
  route: Extract<EndpointRoute, { kind: 'host' }>,
  response: ServerResponse,
): Promise<void> {
  expectMethod(request.method ?? '', 'POST');
  const closing = new AbortController();
  response.once('close', () => closing.abort());
  const body = await readBodyUpTo(request, MAX_BODY_BYTES);
  const text = JSON.stringify(await serveHost(agent, route, body, closing));
  response.writeHead(200, { 'content-type': 'application/json' }).end(text);
}

interface OpenSessions {
  readonly consoles: Sessions;
  readonly displays: Sessions;
}

async function handleUpgrade(options: NodeEndpointOptions, open: OpenSessions, upgrade: UpgradeRequest): Promise<void> {
  const { request, socket } = upgrade;
  try {
    const { route, commonName, query } = admitRequest(options, request);
    const { agent, clock, log } = options;
    switch (route.kind) {
      case 'console':
        return await serveConsole({ agent, clock, log, sessions: open.consoles }, route, upgrade);
      case 'vnc':
        return await serveVnc({ agent, clock, log, sessions: open.displays }, route, query, upgrade);
      case 'port':
        return await servePort(options, route, upgrade);
      case 'migrations':
        return await serveMigration(agent, nodeOfUser(commonName), upgrade);
      case 'disk':
        return await serveDisk({ ...options, disks: agent.disks }, route, upgrade);
      default:
        throw badRequest('the path cannot be upgraded to a stream');
    }
  } catch (error) {
    const apiError = toResponseError(options, request, error);
    const body = Buffer.from(JSON.stringify(apiError.toStatus()));
    refuseUpgrade(socket, { status: apiError.code, contentType: 'application/json', body });
  }
}

interface AdmittedRequest {
  readonly query: URLSearchParams;
  readonly route: EndpointRoute;
  readonly commonName: string;
}

/** Throws ApiError if the client is not allowed to make the request. */
function admitRequest(options: NodeEndpointOptions, request: IncomingMessage): AdmittedRequest {
  const target = splitTarget(request.url ?? '/');
  if (target === undefined) throw badRequest('the path of the request is invalid');
  const { path, query } = target;
  const route = parseEndpointPath(path);
  const commonName = commonNameOf(request.socket as TLSSocket, options);
  const refused = refuseRequest(commonName, route, request.method ?? '', path);
  if (refused !== undefined) throw refused;
  return { query, route, commonName };
}

function commonNameOf(socket: TLSSocket, { ca, logReaderCa }: NodeEndpointOptions): string {
  const { subject } = socket.getPeerCertificate();
  // Several common names are an array, which counts as none.
  const name = typeof subject?.CN === 'string' ? subject.CN : '';
  if (logReaderCa === undefined) return name;
  // The authority of a cluster has many clients; only the API server is accepted with it.
  return isIssuedBy(socket.getPeerX509Certificate(), ca) || name === LOG_READER ? name : '';
}

function expectMethod(method: string, expected: string): void {
  if (method !== expected) throw methodNotAllowed();
}

function toResponseError(
  { log }: NodeEndpointOptions,
  { method, url, socket }: IncomingMessage,
  error: unknown,
): ApiError {
  const apiError = error instanceof ApiError ? error : internalError((error as Error).message, error);
  // Work for a client that has gone fails for that reason; nobody waits for it.
  if (socket.destroyed) log.debug({ method, url, reason: apiError.message }, 'The client has closed the request');
  else if (apiError.code === 500) log.warn({ err: error, method, url }, 'Cannot serve a request to the node endpoint');
  // A refusal for the moment, such as a display that somebody else uses.
  else if (apiError.code > 500) log.info({ reason: apiError.message, method, url }, 'Cannot serve a request now');
  return apiError;
}
