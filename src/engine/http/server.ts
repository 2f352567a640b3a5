/**
 * The HTTPS listener: HTTP/2 and HTTP/1.1 on one port, as a thin shell around an ApiHandler. Identifies the client once
 * per connection. Knows only the headers of Kubernetes.
 */
import { constants } from 'node:crypto';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import { ServerResponse, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex, Writable } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { UnauthenticatedRequest, ApiHandler } from '#engine/request/request.ts';
import type { Authenticator } from '#engine/auth/authenticate.ts';
import { remoteEndOf } from '#engine/http/connection-user.ts';
import { BodyMemory } from '#engine/http/body-memory.ts';
import { ConnectionLimits, connectionSizes, type ConnectionSizes } from '#engine/http/connection-limits.ts';
import { serve } from '#engine/http/exchange.ts';
import {
  allowStreams,
  FIRST_STREAMS,
  http1Exchange,
  http2Exchange,
  upgradeExchange,
  WINDOW_BYTES,
} from '#engine/http/exchanges.ts';
import { Handshakes } from '#engine/http/handshakes.ts';
import { UnreadResponses } from '#engine/http/unread-responses.ts';
import { shareOf } from '#engine/request/user-share.ts';
import { MAX_HEADER_BYTES } from '#engine/request/limits.ts';
import { systemClock } from '#lib/clock.ts';
import { FairTurns } from '#lib/fair-turns.ts';
import { openFileLimit } from '#lib/open-file-limit.ts';
import type { Log } from '#lib/log.ts';

/** Certificates and key in PEM format. */
interface ListenerIdentity {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

interface ListenerOptions extends ListenerIdentity {
  readonly host: string;
  /** 0 = any free port. */
  readonly port: number;
  readonly handler: ApiHandler;
  readonly authenticate: Authenticator;
  /** Called for requests whose credentials are invalid. Must not throw. */
  onUnauthenticated?(request: UnauthenticatedRequest): void;
  readonly log: Log;
  /** Divides the time of the server between users. */
  readonly turns?: FairTurns;
  /** By default as many as the process may open. */
  readonly connectionSizes?: ConnectionSizes;
}

/** Time that open requests have to end when the server stops. */
const STOP_GRACE_MS = 2000;
/** Requests that an HTTP/1.1 client may send before it has the response to the first one, without and with a user. */
const MAX_PIPELINED = { anonymous: 16, known: 256 };
/** HTTP/1.1 connections that are idle for this long are closed. */
const KEEP_ALIVE_MS = 90_000;

function secureContext({ cert, key, ca }: ListenerIdentity) {
  // A resumed session may lack its certificate; a full handshake is cheap with P-256.
  return { cert, key, ca, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_TICKET } as const;
}

export class HttpsListener {
  readonly #server: Http2SecureServer;
  /** All connections, including those in the TLS handshake. */
  readonly #connections = new Set<Socket>();
  readonly #limits: ConnectionLimits;
  readonly #unread = new UnreadResponses(() => systemClock.elapsed());
  readonly #sockets = new Set<TLSSocket>();
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #streams = new Set<Writable>();
  /** HTTP/1.1 connections with a request in progress. */
  readonly #busy = new Set<Socket>();
  #stopping = false;

  private constructor(server: Http2SecureServer, limits: ConnectionLimits, turns: FairTurns) {
    this.#server = server;
    this.#limits = limits;
    const [beginHandshake] = server.listeners('connection');
    server.removeAllListeners('connection');
    const handshakes = new Handshakes<Socket>({ turns, begin: (socket) => void beginHandshake!.call(server, socket) });
    server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => {
        this.#connections.delete(socket);
        limits.remove(socket);
      });
      if (limits.accept(socket)) handshakes.add(socket);
    });
    // Before Node's own listener, which starts to read requests.
    server.prependListener('secureConnection', (socket: TLSSocket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
      const { peer, connection } = remoteEndOf(socket);
      handshakes.finish(connection);
      if (typeof peer === 'object') limits.identify(connection, shareOf(peer));
      else limits.secure(connection);
    });
    server.on('session', (session) => {
      this.#sessions.add(session);
      session.once('close', () => this.#sessions.delete(session));
      const { peer, connection } = remoteEndOf(session);
      limits.setEnd(connection, () => session.close());
      if (typeof peer === 'object') allowStreams(session);
    });
  }

  /** Rejects with errors such as EADDRINUSE. */
  static async start(options: ListenerOptions): Promise<HttpsListener> {
    const sizes = options.connectionSizes ?? connectionSizes(openFileLimit());
    const server = createSecureServer({
      ...secureContext(options),
      requestCert: true,
      // A client without a certificate may still have a token.
      rejectUnauthorized: false,
      allowHTTP1: true,
      maxSessionMemory: 256,
      handshakeTimeout: sizes.headMs,
      settings: {
        maxConcurrentStreams: FIRST_STREAMS,
        initialWindowSize: WINDOW_BYTES,
        maxHeaderListSize: MAX_HEADER_BYTES,
      },
    });
    // Node's default of 5 seconds would make clients connect anew for almost every command. Options do not include it.
    const heads = { headersTimeout: sizes.headMs, connectionsCheckingInterval: sizes.headMs / 4 };
    Object.assign(server, { keepAliveTimeout: KEEP_ALIVE_MS, ...heads });
    const limits = new ConnectionLimits({
      sizes,
      elapsed: () => systemClock.elapsed(),
      onClose: (why) => options.log.debug({ why }, 'Connection closed'),
    });
    const turns = options.turns ?? new FairTurns();
    const listener = new HttpsListener(server, limits, turns);
    listener.#accept({ ...options, turns });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(options.port, options.host, () => {
        server.off('error', reject);
        resolve();
      });
    });
    server.on('error', (error) => options.log.error({ err: error }, 'HTTPS listener failed'));
    return listener;
  }

  /** Replaces the identity for new connections. */
  renew(identity: ListenerIdentity): void {
    this.#server.setSecureContext(secureContext(identity));
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address !== null ? address.port : 0;
  }

  #accept({ handler, authenticate, onUnauthenticated, log, turns }: ListenerOptions & { turns: FairTurns }): void {
    const server = this.#server;
    const own = {
      streams: this.#streams,
      connections: this.#limits,
      bodies: new BodyMemory(),
      unread: this.#unread,
      turns,
    };
    const serving = { handler, authenticate, onUnauthenticated, log, ...own };
    server.on('request', (request, response) => {
      const { connection } = remoteEndOf(request.socket as TLSSocket);
      const { anonymous, known } = MAX_PIPELINED;
      if (this.#limits.openRequests(connection) >= (this.#limits.isTrusted(connection) ? known : anonymous)) {
        request.socket.destroy();
        return;
      }
      this.#occupy(request.socket, response as unknown as ServerResponse);
      serve(http1Exchange(request as unknown as IncomingMessage, response as unknown as ServerResponse), serving);
    });
    server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      const response = new ServerResponse(request);
      // An ordinary response to an upgrade request is the last of its connection.
      response.shouldKeepAlive = false;
      response.assignSocket(socket as Socket);
      response.once('finish', () => (socket as TLSSocket).destroySoon());
      this.#occupy(socket as Socket, response);
      serve(
        upgradeExchange(request, response, head, () => this.#leaveHttp(socket as Socket)),
        serving,
      );
    });
    // node's compatibility layer would also wrap each HTTP/2 stream for 'request'; streams are used directly.
    server.removeAllListeners('stream');
    server.on('stream', (stream, headers) => serve(http2Exchange(stream, headers), serving));
    // A client that disconnects early is not an error of the server.
    server.on('sessionError', (error) => log.debug({ err: error }, 'Connection failed'));
    server.on('tlsClientError', (error) => log.debug({ err: error }, 'TLS handshake failed'));
    server.on('clientError', (error, socket) => {
      log.debug({ err: error }, 'Malformed HTTP/1.1 request');
      socket.end(rawErrorResponse(error));
    });
  }

  /** Stops accepting connections, gives open requests a short time to end, then closes all connections. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    const timer = setTimeout(() => this.#cut(), STOP_GRACE_MS);
    for (const stream of this.#streams) stream.end();
    for (const session of this.#sessions) session.close();
    for (const socket of this.#sockets) {
      if (socket.alpnProtocol !== 'h2' && !this.#busy.has(socket)) socket.destroySoon();
    }
    await closed;
    clearTimeout(timer);
    this.#limits.stop();
    this.#unread.stop();
  }

  /** Marks a connection as busy. On a stop, a busy HTTP/1.1 connection ends after its current request. */
  #occupy(socket: Socket, response: ServerResponse): void {
    this.#busy.add(socket);
    response.once('close', () => {
      this.#busy.delete(socket);
      if (this.#stopping) (socket as TLSSocket).destroySoon();
    });
  }

  /** Marks a connection as upgraded: a stop need not wait for it. */
  #leaveHttp(socket: Socket): void {
    this.#busy.delete(socket);
    if (this.#stopping) (socket as TLSSocket).destroySoon();
  }

  #cut(): void {
    for (const socket of [...this.#sockets, ...this.#connections]) socket.destroy();
  }
}

/** Builds a raw response for a request that cannot be parsed. */
function rawErrorResponse(error: Error): string {
  const tooLong = (error as NodeJS.ErrnoException).code === 'HPE_HEADER_OVERFLOW';
  const status = tooLong ? '431 Request Header Fields Too Large' : '400 Bad Request';
  return `HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n`;
}
