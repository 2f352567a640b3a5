/**
 * The host API on a local socket, <node dir>/host.sock: HTTP without TLS, for whoever may open the socket, which is the
 * user of the agent and root. It is reached through the open directory, because the path of a socket may not be longer
 * than 107 bytes, and that of a directory may.
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
import { readBody } from '#node/endpoint/read-body.ts';
import { parseEndpointPath } from '#node/endpoint/route.ts';
import { serveHost } from '#node/endpoint/serve-host.ts';

export interface HostSocketOptions {
  /** The directory of the node: its owner's alone, as far as this socket is concerned. */
  readonly dir: string;
  readonly agent: Pick<EndpointAgent, 'host'>;
  readonly log: Log;
}

export interface RunningSocket {
  /** Ends every connection and takes the socket away. May be repeated. */
  stop(): Promise<void>;
}

const PRIVATE = 0o600;
const ONLY_OURS = 0o177;
const MAX_CONNECTIONS = 100;
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;

/** A socket that an earlier agent left is replaced: whoever calls this has the directory for itself. */
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
  server.on('request', (request, response) => void answer(options, request, response));
  try {
    await rm(path, { force: true });
    const listening = once(server, 'listening');
    listenPrivately(() => server.listen(path));
    await listening;
    await chmod(path, PRIVATE);
  } catch (error) {
    server.close();
    await directory.close();
    throw error;
  }
  const end = async () => {
    const closed = once(server, 'close');
    server.close();
    for (const socket of sockets) socket.destroy();
    await closed;
    // Only now: the server removes its socket by that path.
    await directory.close();
  };
  let ended: Promise<void> | undefined;
  return { stop: () => (ended ??= end()) };
}

/** Nobody else may open the socket, not even in the moment after it is made. It is made before the call returns. */
function listenPrivately(listen: () => void): void {
  const before = process.umask(ONLY_OURS);
  try {
    listen();
  } finally {
    process.umask(before);
  }
}

async function answer(
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
    const body = await readBody(request, MAX_BODY_BYTES);
    send(200, await serveHost(agent, route, body, ending));
  } catch (error) {
    request.resume();
    const told = error instanceof ApiError ? error : internalError((error as Error).message, error);
    if (told.code >= 500) log.warn({ err: error, method, url }, 'Cannot answer a call of the host API');
    if (response.headersSent) response.destroy();
    else send(told.code, told.toStatus());
  }
}
