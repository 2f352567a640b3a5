/**
 * The connections to one server: HTTP/2 sessions, opened when needed, or HTTP/1.1 if the server does not support
 * HTTP/2.
 *
 *   (none) ──request──► connecting ──h2──► open ──GOAWAY, reset, timeout──► draining: closed after its last request
 *                           └──── no h2 ──► HTTP/1.1 until a request fails, then negotiated again
 *
 * A broken connection fails only the requests on it; the next request opens another connection.
 */
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import { Agent } from 'node:https';
import { isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { rejectOnAbort } from '#client/abort.ts';
import { NotProcessedError, exchangeHttp1, exchangeHttp2 } from '#client/http-exchange.ts';
import type { StreamedResponse, HttpRequest } from '#client/http-exchange.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { TransportError } from '#client/transport.ts';
import type { Clock } from '#lib/clock.ts';

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

export class HttpConnections {
  readonly #host: string;
  readonly #port: number;
  #tls: ConnectionOptions;
  readonly #authority: string;
  readonly #clock: Clock;
  readonly #sessions = new Set<Session>();
  #connecting: Promise<Session | Agent> | undefined;
  /** The socket of #connecting, until it belongs to a session. */
  #opening: TLSSocket | undefined;
  #http1: Agent | undefined;
  /** HTTP/1.1 agents from before a renewal that still have requests in flight. */
  readonly #draining = new Set<Agent>();
  #closed = false;

  constructor(access: ClusterAccess, clock: Clock) {
    const url = new URL(access.server);
    this.#host = url.hostname.replace(/^\[|\]$/g, '');
    this.#port = url.port === '' ? 443 : Number(url.port);
    this.#authority = url.host;
    this.#clock = clock;
    this.#tls = this.#tlsOf(access);
  }

  #tlsOf(access: ClusterAccess): ConnectionOptions {
    const { certificateAuthority: ca, clientCertificate: cert, clientKey: key, insecureSkipTlsVerify } = access;
    // TLS allows only names, no IP addresses, as server name. The certificate is then checked against the address.
    const servername = access.serverName ?? (isIP(this.#host) === 0 ? this.#host : undefined);
    return { ca, cert, key, servername, rejectUnauthorized: !insecureSkipTlsVerify, minVersion: 'TLSv1.2' };
  }

  /** Uses other credentials for the same server. Open connections close after their last request. */
  renew(access: ClusterAccess): void {
    this.#tls = this.#tlsOf(access);
    for (const { http2 } of this.#sessions) http2.close();
    const agent = this.#http1;
    if (agent === undefined) return;
    this.#http1 = undefined;
    for (const old of this.#draining) if (Object.keys(old.sockets).length === 0) this.#draining.delete(old);
    this.#draining.add(agent);
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  /** Throws the error that broke the exchange, or the signal's reason if it is aborted. */
  async exchange(request: HttpRequest): Promise<StreamedResponse> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#exchangeOnce(request);
      } catch (error) {
        if (!(error instanceof NotProcessedError) || request.signal.aborted || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  async #exchangeOnce(request: HttpRequest): Promise<StreamedResponse> {
    request.signal.throwIfAborted();
    for (;;) {
      if (this.#closed) throw new TransportError('the client is closed');
      if (this.#http1 !== undefined) return await this.#exchangeHttp1(this.#http1, request);
      const session = this.#findSession();
      if (session !== undefined) return await this.#exchangeHttp2(session, request);
      await rejectOnAbort(this.#connect(), request.signal);
    }
  }

  /** Closes every connection, including those that are being opened, and fails all requests on them. */
  close(): void {
    this.#closed = true;
    this.#opening?.destroy();
    for (const { http2 } of this.#sessions) http2.destroy();
    for (const agent of [...this.#draining, ...(this.#http1 === undefined ? [] : [this.#http1])]) agent.destroy();
  }

  async #exchangeHttp2(session: Session, request: HttpRequest): Promise<StreamedResponse> {
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

  async #exchangeHttp1(agent: Agent, request: HttpRequest): Promise<StreamedResponse> {
    try {
      return await exchangeHttp1({ host: this.#host, port: this.#port, agent }, request);
    } catch (error) {
      // The server may have been replaced by one with HTTP/2.
      if (this.#http1 === agent && !request.signal.aborted) this.#http1 = undefined;
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
  #connect(): Promise<Session | Agent> {
    this.#connecting ??= this.#open().finally(() => {
      this.#connecting = undefined;
    });
    return this.#connecting;
  }

  async #open(): Promise<Session | Agent> {
    const tls = this.#tls;
    const socket = await this.#openSocket();
    if (this.#closed) {
      socket.destroy();
      throw new TransportError('the client is closed');
    }
    if (socket.alpnProtocol !== 'h2') {
      socket.destroy();
      this.#http1 = new Agent({ ...this.#tls, keepAlive: true, maxSockets: MAX_HTTP1_SOCKETS });
      return this.#http1;
    }
    const session = await this.#openSession(socket);
    // The credentials were renewed in the meantime; the next session uses the new ones.
    if (tls !== this.#tls) session.http2.close();
    return session;
  }

  #openSocket(): Promise<TLSSocket> {
    return new Promise((resolve, reject) => {
      const [host, port] = [this.#host, this.#port];
      const socket = connectTls({ ...this.#tls, host, port, ALPNProtocols: ['h2', 'http/1.1'] });
      this.#opening = socket;
      const cancel = this.#clock.after(CONNECT_TIMEOUT_MS, () => {
        socket.destroy(new TransportError(`no connection within ${CONNECT_TIMEOUT_MS / 1000} seconds`));
      });
      const onError = (error: Error): void => {
        cancel();
        reject(error);
      };
      socket.once('error', onError);
      socket.once('close', () => onError(new TransportError('the connection was closed while it was opened')));
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
      const http2 = connectHttp2(`https://${this.#authority}`, {
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
        reject(new TransportError('the connection was closed while it was opened'));
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
      const onTimeout = (): void => http2.destroy(new TransportError('the server did not answer a ping'));
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
