/**
 * The connections to one server: HTTP/2 sessions, opened when needed, or HTTP/1.1 if the server does not support
 * HTTP/2.
 *
 *   (none) ──request──► connecting ──h2──► open ──GOAWAY, reset, timeout──► draining: closed after its last request
 *                           └──── no h2 ──► HTTP/1.1 until a request fails, then negotiated again
 *
 * A broken connection fails only the requests on it; the next request opens another connection.
 */
import { connect as connectHttp2, type ClientHttp2Session } from 'node:http2';
import type { IncomingMessage } from 'node:http';
import { connect as connectTls, type TLSSocket } from 'node:tls';
import type { Clock } from '#lib/clock.ts';
import { exchangeHttp2, type ExchangeRequest, type StreamedResponse } from '#lib/https/http2-exchange.ts';
import { HttpsClient } from '#lib/https/https-client.ts';
import { HttpsError, HttpsTimeoutError, NotProcessedError } from '#lib/https/https-error.ts';
import { joinHostPort, serverNameOptions, type HttpsServer } from '#lib/https/https-server.ts';
import { createTlsContext, type ClientIdentity } from '#lib/https/client-identity.ts';
import { raceSignal } from '#lib/race-signal.ts';

const CONNECT_TIMEOUT_MS = 15_000;
/** The silence after which a connection is pinged, as in client-go. */
const PING_AFTER_MS = 30_000;
/** The time to answer a ping. */
const PING_TIMEOUT_MS = 15_000;
const MAX_SESSIONS = 16;
/** Attempts for a request that the server did not process because it is shutting down. */
const MAX_ATTEMPTS = 3;
const MAX_HTTP1_SOCKETS = 256;
const STREAM_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 16 * 1024 * 1024;

interface Session {
  readonly http2: ClientHttp2Session;
  streams: number;
}

interface Http2ConnectionsOptions {
  readonly server: HttpsServer;
  readonly identity: ClientIdentity;
  readonly clock: Clock;
}

export class Http2Connections {
  readonly #server: HttpsServer;
  readonly #clock: Clock;
  readonly #sessions = new Set<Session>();
  readonly #http1: HttpsClient;
  #identity: ClientIdentity;
  #connecting: Promise<void> | undefined;
  /** The socket of #connecting, until it belongs to a session. */
  #opening: TLSSocket | undefined;
  #usesHttp1 = false;
  #closed = false;

  constructor({ server, identity, clock }: Http2ConnectionsOptions) {
    this.#server = server;
    this.#identity = identity;
    this.#clock = clock;
    this.#http1 = new HttpsClient({ maxSockets: MAX_HTTP1_SOCKETS, maxKept: MAX_HTTP1_SOCKETS, clock });
  }

  /** Uses another identity for the same server. Open connections close after their last request. */
  renew(identity: ClientIdentity): void {
    this.#identity = identity;
    this.#usesHttp1 = false;
    for (const { http2 } of this.#sessions) http2.close();
  }

  /** Throws the error that broke the exchange, or the signal's reason if it is aborted. */
  async exchange(request: ExchangeRequest): Promise<StreamedResponse> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#exchangeOnce(request);
      } catch (error) {
        if (!(error instanceof NotProcessedError) || request.signal.aborted || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  async #exchangeOnce(request: ExchangeRequest): Promise<StreamedResponse> {
    request.signal.throwIfAborted();
    for (;;) {
      if (this.#closed) throw new HttpsError('the client is closed');
      if (this.#usesHttp1) return await this.#exchangeHttp1(request);
      const session = this.#findSession();
      if (session !== undefined) return await this.#exchangeHttp2(session, request);
      await raceSignal(this.#connect(), request.signal);
    }
  }

  /** Closes every connection, including those that are being opened, and fails all requests on them. */
  close(): void {
    this.#closed = true;
    this.#opening?.destroy();
    for (const { http2 } of this.#sessions) http2.destroy();
    this.#http1.close();
  }

  async #exchangeHttp2(session: Session, request: ExchangeRequest): Promise<StreamedResponse> {
    session.streams++;
    let hasResponse = false;
    const release = (): void => void session.streams--;
    try {
      const response = await exchangeHttp2(session.http2, request);
      hasResponse = true;
      return { ...response, body: withCleanup(response.body, release) };
    } finally {
      if (!hasResponse) release();
    }
  }

  async #exchangeHttp1({ method, path, headers, body, signal }: ExchangeRequest): Promise<StreamedResponse> {
    const length: Record<string, string> = body === undefined ? {} : { 'content-length': String(body.length) };
    try {
      const { incoming } = await this.#http1.send(this.#server, this.#identity, {
        ...{ method, path, body, signal, headers: { ...headers, ...length } },
        connection: 'kept',
      });
      return { status: incoming.statusCode ?? 0, headers: incoming.headers, body: http1Body(incoming) };
    } catch (error) {
      // The server may have been replaced by one with HTTP/2.
      if (!signal.aborted) this.#usesHttp1 = false;
      throw error;
    }
  }

  /**
   * Returns a session with room for another request; if there are too many sessions, the one with the fewest requests.
   */
  #findSession(): Session | undefined {
    let least: Session | undefined;
    for (const session of this.#sessions) {
      if (session.http2.closed || session.http2.destroyed) continue;
      if (session.streams < (session.http2.remoteSettings?.maxConcurrentStreams ?? 100)) return session;
      if (least === undefined || session.streams < least.streams) least = session;
    }
    return this.#sessions.size >= MAX_SESSIONS ? least : undefined;
  }

  /** Opens a connection. Concurrent callers share one attempt. */
  #connect(): Promise<void> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<void> {
    const identity = this.#identity;
    const socket = await this.#openSocket(identity);
    if (this.#closed) {
      socket.destroy();
      throw new HttpsError('the client is closed');
    }
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#usesHttp1 = true;
      return;
    }
    const session = await this.#openSession(socket);
    // The identity was renewed in the meantime; the next session uses the new one.
    if (identity !== this.#identity) session.http2.close();
  }

  #openSocket(identity: ClientIdentity): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const { host, port } = this.#server;
      const socket = connectTls({
        host,
        port,
        ...serverNameOptions(this.#server),
        secureContext: createTlsContext(identity),
        rejectUnauthorized: identity.insecure !== true,
        ALPNProtocols: ['h2', 'http/1.1'],
      });
      this.#opening = socket;
      const cancel = this.#clock.after(CONNECT_TIMEOUT_MS, () => {
        socket.destroy(new HttpsTimeoutError('connect', CONNECT_TIMEOUT_MS));
      });
      const onError = (error: Error): void => {
        cancel();
        reject(error);
      };
      socket.once('error', onError);
      socket.once('close', () => onError(new HttpsError('the connection was closed while it was opened')));
      socket.once('secureConnect', () => {
        cancel();
        socket.off('error', onError);
        socket.setNoDelay(true);
        resolve(socket);
      });
    });
  }

  /** Opens a session and waits for the server's settings, which limit the number of concurrent requests. */
  #openSession(socket: TLSSocket): Promise<Session> {
    return new Promise((resolve, reject) => {
      const http2 = connectHttp2(`https://${joinHostPort(this.#server.host, this.#server.port)}`, {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      });
      const session: Session = { http2, streams: 0 };
      const release = (): boolean => this.#sessions.delete(session);
      const stopPings = this.#keepAlive(http2);
      http2.once('remoteSettings', () => {
        if (http2.closed || http2.destroyed) return;
        http2.setLocalWindowSize(SESSION_WINDOW_BYTES);
        this.#sessions.add(session);
        resolve(session);
      });
      http2.on('goaway', release);
      // Each request on the session reports the error itself.
      http2.on('error', (error: Error) => {
        release();
        reject(error);
      });
      http2.on('close', () => {
        release();
        stopPings();
        reject(new HttpsError('the connection was closed while it was opened'));
      });
    });
  }

  /** Pings the server regularly and destroys the session if it does not answer. Returns a function that stops it. */
  #keepAlive(http2: ClientHttp2Session): () => void {
    let cancel: () => void;
    const scheduleNext = (): void => {
      cancel = this.#clock.after(PING_AFTER_MS, ping);
    };
    const ping = (): void => {
      if (http2.destroyed) return;
      const onTimeout = (): void => http2.destroy(new HttpsError('the server did not answer a ping'));
      const cancelTimeout = this.#clock.after(PING_TIMEOUT_MS, onTimeout);
      cancel = cancelTimeout;
      http2.ping((error) => {
        cancelTimeout();
        if (error === null && !http2.destroyed) scheduleNext();
      });
    };
    scheduleNext();
    return () => cancel();
  }
}

async function* withCleanup(body: AsyncIterable<Buffer>, end: () => void): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* body;
  } finally {
    end();
  }
}

async function* http1Body(incoming: IncomingMessage): AsyncGenerator<Buffer, void, undefined> {
  try {
    for await (const chunk of incoming) yield chunk as Buffer;
    if (!incoming.complete) throw new HttpsError('the connection was closed during the response');
  } finally {
    if (!incoming.complete) incoming.destroy();
  }
}
