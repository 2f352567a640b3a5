/**
 * The connections to one server: HTTP/2 sessions, opened when needed, or HTTP/1.1 where the server has no HTTP/2.
 *
 *   (none) ──request──► connecting ──h2──► open ──GOAWAY, reset, silence──► left: ends with its last request
 *                           └──── no h2 ──► HTTP/1.1 until a request fails, then asked again
 *
 * A broken connection fails the requests that are on it and nothing else; the next request opens another.
 */
import { connect as connectHttp2 } from 'node:http2';
import type { ClientHttp2Session } from 'node:http2';
import { Agent } from 'node:https';
import { isIP } from 'node:net';
import { connect as connectTls } from 'node:tls';
import type { ConnectionOptions, TLSSocket } from 'node:tls';
import { abortable } from '#client/abort.ts';
import { NotTakenError, exchangeHttp1, exchangeHttp2 } from '#client/http-exchange.ts';
import type { HttpAnswer, HttpRequest } from '#client/http-exchange.ts';
import type { ClusterAccess } from '#client/kubeconfig.ts';
import { TransportError } from '#client/transport.ts';
import type { Clock } from '#lib/clock.ts';

const CONNECT_TIMEOUT_MS = 15_000;
/** As client-go: a connection that was silent this long is asked whether it lives ... */
const PING_AFTER_MS = 30_000;
/** ... and has this long to answer. */
const PING_TIMEOUT_MS = 15_000;
const MAX_SESSIONS = 16;
/** For requests that a server on its way out did not take. */
const MAX_TRIES = 3;
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
  /** The socket of #connecting, until it is a session's. */
  #opening: TLSSocket | undefined;
  #http1: Agent | undefined;
  /** Agents of HTTP/1.1 from before a renewal, with requests that are still under way. */
  readonly #left = new Set<Agent>();
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
    // An IP address is not a name to ask for; its certificate is then checked against the address.
    const servername = access.serverName ?? (isIP(this.#host) === 0 ? this.#host : undefined);
    return { ca, cert, key, servername, rejectUnauthorized: !insecureSkipTlsVerify, minVersion: 'TLSv1.2' };
  }

  /** The same server, with another proof of who we are: connections that are open end with their last request. */
  renew(access: ClusterAccess): void {
    this.#tls = this.#tlsOf(access);
    for (const { http2 } of this.#sessions) http2.close();
    const agent = this.#http1;
    if (agent === undefined) return;
    this.#http1 = undefined;
    for (const before of this.#left) if (Object.keys(before.sockets).length === 0) this.#left.delete(before);
    this.#left.add(agent);
    for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
  }

  /** Throws what broke the exchange; the reason of the signal when it aborts. */
  async exchange(request: HttpRequest): Promise<HttpAnswer> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#exchangeOnce(request);
      } catch (error) {
        if (!(error instanceof NotTakenError) || request.signal.aborted || tries === MAX_TRIES) throw error;
      }
    }
  }

  async #exchangeOnce(request: HttpRequest): Promise<HttpAnswer> {
    request.signal.throwIfAborted();
    for (;;) {
      if (this.#closed) throw new TransportError('the client is closed');
      if (this.#http1 !== undefined) return await this.#exchangeHttp1(this.#http1, request);
      const session = this.#roomy();
      if (session !== undefined) return await this.#exchangeHttp2(session, request);
      await abortable(this.#connect(), request.signal);
    }
  }

  /** Ends every connection and every request on it, also those that are only being opened. */
  close(): void {
    this.#closed = true;
    this.#opening?.destroy();
    for (const { http2 } of this.#sessions) http2.destroy();
    for (const agent of [...this.#left, ...(this.#http1 === undefined ? [] : [this.#http1])]) agent.destroy();
  }

  async #exchangeHttp2(session: Session, request: HttpRequest): Promise<HttpAnswer> {
    session.streams++;
    let answered = false;
    const leave = (): void => void session.streams--;
    try {
      const answer = await exchangeHttp2(session.http2, request);
      answered = true;
      return { ...answer, body: endingWith(answer.body, leave) };
    } finally {
      if (!answered) leave();
    }
  }

  async #exchangeHttp1(agent: Agent, request: HttpRequest): Promise<HttpAnswer> {
    try {
      return await exchangeHttp1({ host: this.#host, port: this.#port, agent }, request);
    } catch (error) {
      // Perhaps another server came in its place, and that one may have HTTP/2.
      if (this.#http1 === agent && !request.signal.aborted) this.#http1 = undefined;
      throw error;
    }
  }

  /** A session that takes one more request at once; with too many sessions, the one with the fewest requests. */
  #roomy(): Session | undefined {
    let least: Session | undefined;
    for (const session of this.#sessions) {
      if (session.http2.closed || session.http2.destroyed) continue;
      if (session.streams < (session.http2.remoteSettings?.maxConcurrentStreams ?? 100)) return session;
      if (least === undefined || session.streams < least.streams) least = session;
    }
    return this.#sessions.size >= MAX_SESSIONS ? least : undefined;
  }

  /** Callers that come meanwhile share one attempt. */
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
    // Renewed meanwhile: the next one has the new proof.
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

  /** Waits for the server's settings, without which the number of requests it takes is unknown. */
  #openSession(socket: TLSSocket): Promise<Session> {
    return new Promise((resolve, reject) => {
      const http2 = connectHttp2(`https://${this.#authority}`, {
        createConnection: () => socket,
        settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      });
      const session: Session = { http2, streams: 0 };
      const leave = (): boolean => this.#sessions.delete(session);
      const stopPings = this.#keepAlive(http2);
      http2.once('remoteSettings', () => {
        if (http2.closed || http2.destroyed) return;
        http2.setLocalWindowSize(SESSION_WINDOW_BYTES);
        this.#sessions.add(session);
        resolve(session);
      });
      http2.on('goaway', leave);
      // Each request on it reports the error itself.
      http2.on('error', (error: Error) => {
        leave();
        reject(error);
      });
      http2.on('close', () => {
        leave();
        stopPings();
        reject(new TransportError('the connection was closed while it was opened'));
      });
    });
  }

  /** A peer that vanished without a word is found out by pings that stay unanswered. */
  #keepAlive(http2: ClientHttp2Session): () => void {
    let cancel: () => void;
    const wait = (): void => {
      cancel = this.#clock.after(PING_AFTER_MS, ask);
    };
    const ask = (): void => {
      if (http2.destroyed) return;
      const silent = (): void => http2.destroy(new TransportError('the server did not answer a ping'));
      const cancelTimeout = this.#clock.after(PING_TIMEOUT_MS, silent);
      cancel = cancelTimeout;
      http2.ping((error) => {
        cancelTimeout();
        if (error === null && !http2.destroyed) wait();
      });
    };
    wait();
    return () => cancel();
  }
}

async function* endingWith(body: AsyncIterable<Buffer>, end: () => void): AsyncGenerator<Buffer, void, undefined> {
  try {
    yield* body;
  } finally {
    end();
  }
}
