/** Opens WebSockets (RFC 6455 section 4), on the server and on the client. No extensions, so no compression. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import type { Agent } from 'node:https';
import type { Duplex } from 'node:stream';
import { WebSocket, WebSocketServer, type ClientOptions } from 'ws';
import type { Clock } from '#lib/clock.ts';
import { HttpsTimeoutError } from '#lib/https/https-error.ts';
import type { ServerNameOptions } from '#lib/https/https-server.ts';
import { enableTcpKeepAlive } from '#lib/tcp-keep-alive.ts';
import { WebSocketStream } from '#lib/websocket/websocket.ts';

const VERSION = '13';
/** The base64 form of 16 bytes. */
const KEY = /^[A-Za-z0-9+/]{22}==$/;
const MAX_MESSAGE_BYTES = 1024 * 1024;
/**
 * Limit for the pieces in which a message arrives: `ws` takes minutes to join several hundred thousand. Even the shortest
 * packets (536 bytes) need fewer for the largest message.
 */
const MAX_MESSAGE_PIECES = 8192;
/** Time for the other side to answer a close. */
const CLOSE_TIMEOUT_MS = 30_000;
const LIMITS = {
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
  maxBufferedChunks: MAX_MESSAGE_PIECES,
  closeTimeout: CLOSE_TIMEOUT_MS,
} as const;

/** A request to upgrade a connection, as a server of Node.js receives it. */
export interface UpgradeRequest {
  readonly request: IncomingMessage;
  readonly socket: Duplex;
  readonly head: Buffer;
}

/**
 * Returns why the request cannot be accepted as a WebSocket, or undefined if it can. A client may request no subprotocol,
 * but not only unknown ones.
 */
export function findHandshakeError(headers: IncomingHttpHeaders, known: readonly string[]): string | undefined {
  if (headers.upgrade?.toLowerCase() !== 'websocket') return 'the request does not ask to upgrade to one';
  if (!KEY.test(headers['sec-websocket-key'] ?? '')) {
    return 'Sec-WebSocket-Key is missing or is not 16 bytes in base64';
  }
  if (headers['sec-websocket-version'] !== VERSION) return `Sec-WebSocket-Version must be ${VERSION}`;
  const requested = headers['sec-websocket-protocol'];
  if (requested !== undefined && !requested.split(',').some((name) => known.includes(name.trim()))) {
    return `none of the requested subprotocols is known; known are: ${known.join(', ')}`;
  }
  return undefined;
}

/**
 * Accepts a request without a handshake error. Selects the first of the client's subprotocols that is known. Returns
 * undefined if the client is gone, or if `ws` has answered that the request is malformed.
 */
export function acceptWebSocket(
  { request, socket, head }: UpgradeRequest,
  known: readonly string[],
): WebSocketStream | undefined {
  const server = new WebSocketServer({
    ...LIMITS,
    noServer: true,
    clientTracking: false,
    handleProtocols: (requested) => [...requested].find((name) => known.includes(name)) ?? false,
  });
  let stream: WebSocketStream | undefined;
  // Calls back before it returns.
  server.handleUpgrade(request, socket, head, (accepted) => {
    stream = new WebSocketStream(accepted);
  });
  enableTcpKeepAlive(socket);
  return stream;
}

interface WebSocketRequest {
  readonly url: string;
  readonly protocols: readonly string[];
  readonly headers?: Readonly<Record<string, string>>;
  /** Opens the connection. Must not negotiate HTTP/2. */
  readonly agent?: Agent;
  readonly serverName?: ServerNameOptions;
  readonly timeoutMs: number;
  readonly clock: Clock;
}

/** The response of the server, with the WebSocket if it accepted the request. */
export interface WebSocketResponse {
  readonly incoming: IncomingMessage;
  readonly stream?: WebSocketStream;
}

/** The server accepted the upgrade, but not as RFC 6455 requires. */
export class HandshakeError extends Error {
  override name = 'HandshakeError';
}

/** Rejects with HandshakeError, HttpsTimeoutError or the network error. */
export function requestWebSocket(options: WebSocketRequest): Promise<WebSocketResponse> {
  const { url, protocols, headers, agent, serverName, timeoutMs, clock } = options;
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url, [...protocols], {
      ...LIMITS,
      headers,
      agent,
      // The types of `ws` declare checkServerIdentity differently; `ws` passes it on to Node.js.
      ...(serverName as ClientOptions | undefined),
    });
    let incoming: IncomingMessage | undefined;
    const stopTimer = clock.after(timeoutMs, () => {
      reject(new HttpsTimeoutError('headers', timeoutMs));
      socket.terminate();
    });
    socket.on('upgrade', (response) => {
      incoming = response;
    });
    socket.on('unexpected-response', (_, response) => {
      stopTimer();
      resolve({ incoming: response });
    });
    socket.on('open', () => {
      stopTimer();
      enableTcpKeepAlive(incoming!.socket);
      resolve({ incoming: incoming!, stream: new WebSocketStream(socket) });
    });
    socket.on('error', (cause) => {
      stopTimer();
      reject(incoming === undefined ? cause : new HandshakeError(cause.message, { cause }));
    });
  });
}
