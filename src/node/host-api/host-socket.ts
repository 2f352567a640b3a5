/**
 * Serves the host API on a local socket, <node dir>/host.sock: HTTP without TLS, for those who can open the socket,
 * which are the user of the agent and root. The socket is opened through the file descriptor of its directory, because
 * the path of a socket is limited to 107 bytes.
 */
import { once } from 'node:events';
import { constants } from 'node:fs';
import { chmod, open, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { HOST_SOCKET } from '#api/host-api.ts';
import { ApiError, internalError, methodNotAllowed } from '#kube/api-error.ts';
import type { Log } from '#lib/log.ts';
import type { EndpointAgent } from '#node/endpoint/endpoint-agent.ts';
import { readBodyUpTo } from '#node/endpoint/read-body-up-to.ts';
import { parseEndpointPath } from '#node/endpoint/route.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';

interface HostSocketOptions {
  /** The directory of the node. No other process may use this socket name in it. */
  readonly dir: string;
  readonly agent: Pick<EndpointAgent, 'host'>;
  readonly log: Log;
}

interface RunningSocket {
  /** Ends every connection and removes the socket. May be called again. */
  stop(): Promise<void>;
}

const OWNER_ONLY = 0o600;
const OWNER_ONLY_UMASK = 0o177;
const MAX_CONNECTIONS = 100;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** Starts the server and replaces the socket of an earlier agent. The caller must own the directory exclusively. */
export async function startHostSocket(options: HostSocketOptions): Promise<RunningSocket> {
  const directory = await open(options.dir, constants.O_RDONLY | constants.O_DIRECTORY);
  const path = `/proc/self/fd/${directory.fd}/${HOST_SOCKET}`;
  const server = createServer({ headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS });
  server.maxConnections = MAX_CONNECTIONS;
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  server.on('request', (request, response) => void handleRequest(options, request, response));
  try {
    await rm(path, { force: true });
    const listening = once(server, 'listening');
    listenPrivately(() => server.listen(path));
    await listening;
    await chmod(path, OWNER_ONLY);
  } catch (error) {
    server.close();
    await directory.close();
    throw error;
  }
  const stop = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
    // Closed last, because the server removes its socket by that path.
    await directory.close();
  };
  let stopping: Promise<void> | undefined;
  return { stop: () => (stopping ??= stop()) };
}

/**
 * Creates the socket with a restrictive umask, so that no other user can open it even before chmod. `listen` creates it
 * synchronously.
 */
function listenPrivately(listen: () => void): void {
  const before = process.umask(OWNER_ONLY_UMASK);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}

async function handleRequest(
  { agent, log }: HostSocketOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method, url = '/' } = request;
  const send = (code: number, body: unknown) =>
    response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  try {
    const route = parseEndpointPath(url);
    if (route.kind !== 'host') {
      throw new ApiError(404, 'NotFound', 'the server could not find the requested resource', { details: {} });
    }
    if (method !== 'POST') throw methodNotAllowed();
    const ending = new AbortController();
    response.once('close', () => ending.abort());
    const body = await readBodyUpTo(request, MAX_BODY_BYTES);
    send(200, await serveHost(agent, route, body, ending));
  } catch (error) {
    request.resume();
    const apiError = error instanceof ApiError ? error : internalError((error as Error).message, error);
    if (apiError.code >= 500) log.warn({ err: error, method, url }, 'Cannot answer a call of the host API');
    if (response.headersSent) response.destroy();
    else send(apiError.code, apiError.toStatus());
  }
}
