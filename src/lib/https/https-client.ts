/**
 * Sends HTTP/1.1 requests over TLS: bodies as streams, upgrades as raw connections. Owns the connections, the renewal of
 * TLS identities, and the times for connecting and for the first response. Redirects are not followed. Callers bound
 * the number of requests and read the responses (read-body.ts). http2-connections.ts is for many requests to one server
 * that supports HTTP/2, which has no upgrades and shares one connection.
 *
 * Errors are those of Node.js or HttpsError.
 */
import { Agent, request, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import type { Duplex, Readable } from 'node:stream';
import { checkServerIdentity, type PeerCertificate } from 'node:tls';
import type { Clock } from '#lib/clock.ts';
import { HttpsError, HttpsTimeoutError, type HttpsPhase } from '#lib/https/https-error.ts';
import { joinHostPort, serverNameOptions, type HttpsServer } from '#lib/https/https-server.ts';
import { createTlsContext, isSameIdentity, type ClientIdentity } from '#lib/https/client-identity.ts';
import { requestWebSocket, type WebSocketResponse } from '#lib/websocket/websocket-handshake.ts';

export interface HttpsRequest {
  readonly method: string;
  /** Path including the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Readable | Buffer | undefined;
  /**
   * `fresh`: the request has its own connection. `kept`: it may use a kept-alive connection, and fails if the server
   * closes that at the same moment. `repeatable`: like `kept`, but it is sent again then. `fresh` by default.
   */
  readonly connection?: 'fresh' | 'kept' | 'repeatable';
  /** True to upgrade the connection to the protocol in `headers`. A refused upgrade is an ordinary response. */
  readonly upgrade?: boolean | undefined;
  readonly connectTimeoutMs?: number | undefined;
  /** Undefined for responses that may begin late. */
  readonly headersTimeoutMs?: number | undefined;
  readonly maxHeaderBytes?: number;
  /** Checks the certificate of the server, which is valid. For `fresh` connections. */
  readonly checkPeer?: ((certificate: PeerCertificate) => Error | undefined) | undefined;
  readonly signal?: AbortSignal;
}

interface HttpsWebSocketRequest {
  /** Path including the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly protocols: readonly string[];
  readonly headersTimeoutMs: number;
}

export interface UpgradedConnection {
  readonly incoming: IncomingMessage;
  readonly connection: Duplex;
  readonly head: Buffer;
}

export type HttpsResponse = { readonly incoming: IncomingMessage } | UpgradedConnection;

interface HttpsClientOptions {
  /** Limit of the connections to one server; other requests wait. */
  readonly maxSockets: number;
  /** Limit of the idle connections to one server that are kept alive. */
  readonly maxKept?: number;
  readonly clock: Clock;
}

interface Agents {
  readonly identity: ClientIdentity;
  readonly kept: Agent;
  readonly fresh: Agent;
}

export class HttpsClient {
  readonly #maxSockets: number;
  readonly #maxKept: number;
  readonly #clock: Clock;
  #agents: Agents | undefined;
  /** Agents of earlier identities with pending requests. */
  readonly #earlier = new Set<Agent>();
  #isRetired = false;

  constructor({ maxSockets, maxKept = 0, clock }: HttpsClientOptions) {
    this.#maxSockets = maxSockets;
    this.#maxKept = maxKept;
    this.#clock = clock;
  }

  /** Sends a request. Connections of another identity are not used for it; they end with their requests. */
  async send(server: HttpsServer, identity: ClientIdentity, sent: HttpsRequest): Promise<HttpsResponse> {
    const { kept, fresh } = this.#agentsOf(identity);
    const { connection = 'fresh' } = sent;
    const options = { ...requestOptions(server, sent), agent: connection === 'fresh' ? fresh : kept };
    for (let left = connection === 'repeatable' ? this.#maxKept : 0; ; left--) {
      const response = await this.#attempt(options, sent, left > 0);
      if (response !== undefined) return response;
    }
  }

  /** Opens a WebSocket. Rejects also with HandshakeError. */
  async openWebSocket(
    server: HttpsServer,
    identity: ClientIdentity,
    { path, headers, protocols, headersTimeoutMs }: HttpsWebSocketRequest,
  ): Promise<WebSocketResponse> {
    return await requestWebSocket({
      url: `https://${joinHostPort(server.host, server.port)}${path}`,
      serverName: serverNameOptions(server),
      protocols,
      headers,
      agent: this.#agentsOf(identity).fresh,
      timeoutMs: headersTimeoutMs,
      clock: this.#clock,
    });
  }

  /** Closes each connection after its last request. */
  retire(): void {
    this.#isRetired = true;
    this.#retireAgents();
  }

  /** Closes all connections; requests on them fail. */
  close(): void {
    this.retire();
    for (const agent of this.#earlier) agent.destroy();
  }

  #agentsOf(identity: ClientIdentity): Agents {
    if (this.#agents !== undefined && isSameIdentity(this.#agents.identity, identity)) return this.#agents;
    const options = {
      maxSockets: this.#maxSockets,
      secureContext: createTlsContext(identity),
      rejectUnauthorized: identity.insecure !== true,
      ALPNProtocols: ['http/1.1'],
      // A resumed session does not provide the certificate of the server.
      maxCachedSessions: 0,
    };
    this.#retireAgents();
    const kept = new Agent({ ...options, keepAlive: true });
    // The option would take 0 for the default.
    kept.maxFreeSockets = this.#isRetired ? 0 : this.#maxKept;
    this.#agents = { identity, kept, fresh: new Agent({ ...options, keepAlive: false }) };
    return this.#agents;
  }

  #retireAgents(): void {
    for (const agent of this.#earlier) if (Object.keys(agent.sockets).length === 0) this.#earlier.delete(agent);
    if (this.#agents === undefined) return;
    const { kept, fresh } = this.#agents;
    this.#agents = undefined;
    kept.maxFreeSockets = 0;
    for (const sockets of Object.values(kept.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    this.#earlier.add(kept).add(fresh);
  }

  /** Returns undefined if a kept-alive connection was closed before the server responded, and `again` is true. */
  #attempt(options: RequestOptions, sent: HttpsRequest, again: boolean): Promise<HttpsResponse | undefined> {
    return new Promise((resolve, reject) => {
      const outgoing = request(options);
      const stopTimers = this.#startTimers(outgoing, sent);
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        stopTimers();
        if (again && outgoing.reusedSocket && CLOSED.has(error.code)) resolve(undefined);
        else reject(error);
      });
      outgoing.once('response', (incoming) => {
        stopTimers();
        // The reader of the response sees its end; without a listener an early end would be an uncaught error.
        incoming.on('error', () => {});
        resolve({ incoming });
      });
      // Always handled: without a listener Node.js closes the connection and the request never ends.
      outgoing.once('upgrade', (incoming, connection, head) => {
        stopTimers();
        connection.on('error', () => {});
        if (sent.upgrade === true) {
          resolve({ incoming, connection, head });
        } else {
          connection.destroy();
          reject(new HttpsError('the server switched protocols without a request to do so'));
        }
      });
      sendBody(outgoing, sent.body);
    });
  }

  #startTimers(outgoing: ClientRequest, { connectTimeoutMs, headersTimeoutMs }: HttpsRequest): () => void {
    const start = (phase: HttpsPhase, timeoutMs: number | undefined) => {
      if (timeoutMs === undefined) return () => {};
      return this.#clock.after(timeoutMs, () => outgoing.destroy(new HttpsTimeoutError(phase, timeoutMs)));
    };
    const onConnect = start('connect', connectTimeoutMs);
    const onHeaders = start('headers', headersTimeoutMs);
    outgoing.once('socket', (socket) => {
      if (outgoing.reusedSocket) onConnect();
      else socket.once('secureConnect', onConnect);
    });
    return () => {
      onConnect();
      onHeaders();
    };
  }
}

/** Errors of a connection that the server closed. */
const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);

function requestOptions(server: HttpsServer, sent: HttpsRequest): RequestOptions {
  const { method, path, headers, signal, maxHeaderBytes, checkPeer } = sent;
  const named = serverNameOptions(server);
  const { checkServerIdentity: check = checkServerIdentity } = named;
  return {
    method,
    host: server.host,
    port: server.port,
    path,
    headers,
    ...named,
    ...(signal !== undefined && { signal }),
    ...(maxHeaderBytes !== undefined && { maxHeaderSize: maxHeaderBytes }),
    ...(checkPeer !== undefined && {
      checkServerIdentity: (name: string, certificate: PeerCertificate) =>
        check(name, certificate) ?? checkPeer(certificate),
    }),
  };
}

function sendBody(outgoing: ClientRequest, body: Readable | Buffer | undefined): void {
  if (body === undefined || Buffer.isBuffer(body)) {
    outgoing.end(body);
    return;
  }
  // Not a pipeline: if the server rejects the rest of the body, the client must still get the response.
  body.pipe(outgoing);
  body.once('close', () => {
    if (!body.readableEnded) outgoing.destroy();
  });
  outgoing.once('close', () => {
    body.unpipe(outgoing);
    body.resume();
  });
}
