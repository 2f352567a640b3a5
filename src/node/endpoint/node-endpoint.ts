/**
 * The HTTPS server of a node agent: logs for the API server; verbs, consoles, displays, ports and disks for
 * subresources/; the host API for those who are named for it; guests from other nodes. Only certificates of our CA come
 * in; what each may is peer.ts's. Errors are Statuses, as everywhere.
 */
import { once } from 'node:events';
import { createServer } from 'node:https';
import { STATUS_CODES, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError, badRequest, internalError, methodNotAllowed } from '#kube/api-error.ts';
import { nodeOfUser } from '#kube/node-user.ts';
import { splitTarget } from '#kube/request-target.ts';
import type { Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { readLogOptions } from '#node/endpoint/log-options.ts';
import { LOG_READER, refusal } from '#node/endpoint/peer.ts';
import { isIssuedBy } from '#lib/pki/issued-by.ts';
import type { Upgrading } from '#node/endpoint/plain-stream.ts';
import { parseEndpointPath, type EndpointRoute } from '#node/endpoint/route.ts';
import { readBody } from '#node/endpoint/read-body.ts';
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

export interface NodeEndpointOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** PEM. */
  readonly cert: string;
  readonly key: string;
  /** Of whoever may come in. */
  readonly ca: string;
  /** PEM; of the API server alone, where that has another authority than our own parts. */
  readonly logReaderCa?: string | undefined;
  readonly agent: EndpointAgent;
  readonly log: Log;
  readonly clock: Clock;
}

/** PEM. */
export interface EndpointIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

export interface RunningEndpoint {
  readonly port: number;
  /** From now on, for new connections. */
  renew(identity: EndpointIdentity): void;
  /** Ends every connection, consoles too; guests do not notice. */
  stop(): Promise<void>;
}

/** Rejects where it cannot listen. */
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
  // Before TLS: who connects and says nothing would keep us from stopping.
  server.on('connection', (socket: Duplex) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => void answer({ ...options, ca }, request, response));
  server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    socket.on('error', () => {});
    void upgrade({ ...options, ca }, open, { request, socket, head });
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

async function answer(options: NodeEndpointOptions, request: IncomingMessage, response: ServerResponse): Promise<void> {
  try {
    const { query, route } = admitted(options, request);
    if (route.kind === 'host') return await answerHost(options, request, route, response);
    // Other bodies say nothing.
    request.resume();
    await serve(options, request.method ?? '', query, route, response);
  } catch (error) {
    const told = toldError(options, request, error);
    request.resume();
    if (response.headersSent) response.destroy();
    else response.writeHead(told.code, { 'content-type': 'application/json' }).end(JSON.stringify(told.toStatus()));
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
      return await serveLogs(agent, route, readLogOptions(query, clock.now()), response);
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

async function answerHost(
  { agent }: NodeEndpointOptions,
  request: IncomingMessage,
  route: Extract<EndpointRoute, { kind: 'host' }>,
  response: ServerResponse,
): Promise<void> {
  expectMethod(request.method ?? '', 'POST');
  const ending = new AbortController();
  response.once('close', () => ending.abort());
  const body = await readBody(request, MAX_BODY_BYTES);
  const text = JSON.stringify(await serveHost(agent, route, body, ending));
  response.writeHead(200, { 'content-type': 'application/json' }).end(text);
}

interface OpenSessions {
  readonly consoles: Sessions;
  readonly displays: Sessions;
}

async function upgrade(options: NodeEndpointOptions, open: OpenSessions, upgrading: Upgrading): Promise<void> {
  const { request, socket } = upgrading;
  try {
    const { route, commonName, query } = admitted(options, request);
    const { agent, log } = options;
    switch (route.kind) {
      case 'console':
        return await serveConsole({ agent, log, sessions: open.consoles }, route, upgrading);
      case 'vnc':
        return await serveVnc({ agent, log, sessions: open.displays }, route, query, upgrading);
      case 'port':
        return await servePort(options, route, upgrading);
      case 'migrations':
        return await serveMigration(agent, nodeOfUser(commonName), upgrading);
      case 'disk':
        return await serveDisk({ ...options, door: agent.disks }, route, upgrading);
      default:
        throw badRequest('there is nothing to upgrade to');
    }
  } catch (error) {
    const told = toldError(options, request, error);
    const body = Buffer.from(JSON.stringify(told.toStatus()));
    const lines = [
      `HTTP/1.1 ${told.code} ${STATUS_CODES[told.code] ?? ''}`,
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
      'Connection: close',
    ];
    socket.end(Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), body]));
  }
}

interface Admitted {
  readonly query: URLSearchParams;
  readonly route: EndpointRoute;
  readonly commonName: string;
}

/** Throws ApiError where whoever asks may not. */
function admitted(options: NodeEndpointOptions, request: IncomingMessage): Admitted {
  const target = splitTarget(request.url ?? '/');
  if (target === undefined) throw badRequest('the path cannot be read');
  const { path, query } = target;
  const route = parseEndpointPath(path);
  const commonName = commonNameOf(request.socket as TLSSocket, options);
  const refused = refusal(commonName, route, request.method ?? '', path);
  if (refused !== undefined) throw refused;
  return { query, route, commonName };
}

function commonNameOf(socket: TLSSocket, { ca, logReaderCa }: NodeEndpointOptions): string {
  const { subject } = socket.getPeerCertificate();
  // More than one name is none.
  const name = typeof subject?.CN === 'string' ? subject.CN : '';
  if (logReaderCa === undefined) return name;
  // A cluster gives certificates to many: whoever is not ours can only be the API server.
  return isIssuedBy(socket.getPeerX509Certificate(), ca) || name === LOG_READER ? name : '';
}

function expectMethod(method: string, expected: string): void {
  if (method !== expected) throw methodNotAllowed();
}

function toldError({ log }: NodeEndpointOptions, { method, url }: IncomingMessage, error: unknown): ApiError {
  const told = error instanceof ApiError ? error : internalError((error as Error).message, error);
  if (told.code >= 500) log.warn({ err: error, method, url }, 'Cannot answer a request to the node');
  return told;
}
