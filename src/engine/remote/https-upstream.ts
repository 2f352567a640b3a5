/**
 * Requests to one kind of server behind us (an aggregated API, the kubelets) over HTTPS and HTTP/1.1: bodies as
 * streams, upgrades as raw connections. How many are open, how long connecting and the first answer take: all bounded.
 * Nothing is followed, and nothing but a read on a kept connection that turns out to be closed is tried again.
 */
import { Agent, request, type AgentOptions, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { goNetworkError, joined, type Dialed } from '#engine/remote/go-network-error.ts';
import { MAX_HEADER_BYTES } from '#engine/limits.ts';
import type { Clock } from '#lib/clock.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_KEPT_SOCKETS = 16;

/** PEM. */
export interface ClientProof {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface UpstreamTls {
  /** PEM; '' = the system's roots. */
  readonly ca: string;
  /** Who we say we are, now: the same value for as long as nothing was renewed. */
  readonly client?: (() => ClientProof) | undefined;
  /** Takes any certificate. */
  readonly insecure?: boolean;
}

export interface UpstreamRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Readable | Buffer | undefined;
  /** The connection is to leave HTTP; `headers` say for what. */
  readonly upgrade?: boolean;
  /** undefined = answers that begin only when there is something to tell. */
  readonly headersTimeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

export interface Upgraded {
  readonly incoming: IncomingMessage;
  readonly connection: Duplex;
  readonly head: Buffer;
}

/** An upgrade that was refused is an ordinary answer. */
export type UpstreamAnswer = { readonly incoming: IncomingMessage } | Upgraded;

/** Its message says why in Go's words. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** What we were told about the other side cannot be used. */
export class UpstreamSetupError extends UpstreamError {
  override name = 'UpstreamSetupError';
}

/** Too many are open already. */
export class UpstreamBusyError extends UpstreamError {
  override name = 'UpstreamBusyError';
}

export interface HttpsUpstreamOptions {
  readonly tls: UpstreamTls;
  readonly maxOpen: number;
  readonly clock: Clock;
}

interface Agents {
  readonly client: ClientProof | undefined;
  /** For reads, which may be tried again when a kept connection was closed under them. */
  readonly kept: Agent;
  /** For everything else: each its own connection. */
  readonly fresh: Agent;
}

export class HttpsUpstream {
  readonly #options: HttpsUpstreamOptions;
  #agents: Agents | undefined;
  /** From before a renewal, with requests that are under way. */
  readonly #left = new Set<Agent>();
  #open = 0;
  #retired = false;

  constructor(options: HttpsUpstreamOptions) {
    this.#options = options;
  }

  /** Rejects with UpstreamError. */
  async open(dialed: Dialed, asked: UpstreamRequest): Promise<UpstreamAnswer> {
    const { maxOpen } = this.#options;
    if (this.#open >= maxOpen) throw new UpstreamBusyError(`too many requests are under way; the limit is ${maxOpen}`);
    const repeatable = asked.body === undefined && asked.upgrade !== true && isRead(asked.method);
    const options = { ...requestOptions(dialed, asked), agent: this.#agent(repeatable) };
    this.#open++;
    let answer: UpstreamAnswer | undefined;
    try {
      for (let left = repeatable ? MAX_KEPT_SOCKETS : 0; answer === undefined; left--) {
        answer = await this.#attempt(options, dialed, asked, left > 0);
      }
    } catch (error) {
      this.#over();
      throw error;
    }
    const held = 'connection' in answer ? answer.connection : answer.incoming;
    if (held.destroyed) this.#over();
    else held.once('close', () => this.#over());
    return answer;
  }

  /** Nobody asks it any more: lets go of its connections when the last request is over. */
  retire(): void {
    this.#retired = true;
    this.#closeIfDone();
  }

  #over(): void {
    this.#open--;
    this.#closeIfDone();
  }

  #closeIfDone(): void {
    if (this.#retired && this.#open === 0) this.close();
  }

  /** Ends kept connections, and those of requests under way. */
  close(): void {
    this.#agents?.kept.destroy();
    this.#agents?.fresh.destroy();
    for (const agent of this.#left) agent.destroy();
  }

  #agent(kept: boolean): Agent {
    const client = this.#options.tls.client?.();
    if (this.#agents === undefined || this.#agents.client !== client) {
      const { tls, maxOpen } = this.#options;
      const options: AgentOptions = {
        maxSockets: maxOpen,
        maxFreeSockets: MAX_KEPT_SOCKETS,
        secureContext: secureContext(tls.ca, client),
        rejectUnauthorized: tls.insecure !== true,
        ALPNProtocols: ['http/1.1'],
      };
      this.#leave();
      const [reads, others] = [new Agent({ ...options, keepAlive: true }), new Agent({ ...options, keepAlive: false })];
      this.#agents = { client, kept: reads, fresh: others };
    }
    return kept ? this.#agents.kept : this.#agents.fresh;
  }

  /** Connections that nobody uses end, the others with their requests. */
  #leave(): void {
    for (const agent of this.#left) if (Object.keys(agent.sockets).length === 0) this.#left.delete(agent);
    if (this.#agents === undefined) return;
    const { kept, fresh } = this.#agents;
    for (const sockets of Object.values(kept.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    this.#left.add(kept).add(fresh);
  }

  /** undefined = a kept connection was closed before it took the request. */
  #attempt(
    options: RequestOptions,
    dialed: Dialed,
    { body, headersTimeoutMs, upgrade }: UpstreamRequest,
    again: boolean,
  ): Promise<UpstreamAnswer | undefined> {
    return new Promise((resolve, reject) => {
      let outgoing: ClientRequest;
      try {
        outgoing = request(options);
      } catch (error) {
        // A header that cannot be sent, say.
        reject(new UpstreamError((error as Error).message, { cause: error }));
        return;
      }
      const stopTimers = this.#bound(outgoing, dialed, headersTimeoutMs);
      outgoing.on('error', (error: NodeJS.ErrnoException) => {
        stopTimers();
        if (again && outgoing.reusedSocket && isClosed(error)) resolve(undefined);
        else reject(error instanceof UpstreamError ? error : upstreamError(error, dialed));
      });
      outgoing.once('response', (incoming) => {
        stopTimers();
        // Whoever takes the answer sees its end; without a listener an early one would be an uncaught error.
        incoming.on('error', () => {});
        resolve({ incoming });
      });
      if (upgrade === true) {
        outgoing.once('upgrade', (incoming, connection, head) => {
          stopTimers();
          connection.on('error', () => {});
          resolve({ incoming, connection, head });
        });
      }
      send(outgoing, body);
    });
  }

  #bound(outgoing: ClientRequest, { host, port }: Dialed, headersTimeoutMs: number | undefined): () => void {
    const { clock } = this.#options;
    const fail = (why: string) => () => outgoing.destroy(new UpstreamError(why));
    const connected = clock.after(CONNECT_TIMEOUT_MS, fail(`dial tcp ${joined(host, port)}: i/o timeout`));
    const answered =
      headersTimeoutMs === undefined
        ? () => {}
        : clock.after(headersTimeoutMs, fail('net/http: timeout awaiting response headers'));
    outgoing.once('socket', (socket) => {
      if (outgoing.reusedSocket) connected();
      else (socket as TLSSocket).once('secureConnect', connected);
    });
    return () => {
      connected();
      answered();
    };
  }
}

function requestOptions({ host, port, serverName }: Dialed, asked: UpstreamRequest): RequestOptions {
  const { method, path, headers, signal } = asked;
  return {
    method,
    host,
    port,
    path,
    signal,
    headers: { Host: joined(serverName, port), ...headers },
    maxHeaderSize: MAX_HEADER_BYTES,
    // An address is never sent as a server name; the certificate is checked for it all the same.
    servername: isIP(serverName) === 0 ? serverName : '',
  };
}

function send(outgoing: ClientRequest, body: Readable | Buffer | undefined): void {
  if (body === undefined || Buffer.isBuffer(body)) {
    outgoing.end(body);
    return;
  }
  // Not a pipeline: when the other side does not want the rest, our client must still get its answer.
  body.pipe(outgoing);
  body.once('close', () => {
    if (!body.readableEnded) outgoing.destroy();
  });
  outgoing.once('close', () => {
    body.unpipe(outgoing);
    body.resume();
  });
}

const isRead = (method: string) => method === 'GET' || method === 'HEAD';

const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
const isClosed = ({ code }: NodeJS.ErrnoException) => CLOSED.has(code);

function upstreamError(error: Error, dialed: Dialed): UpstreamError {
  const why = error.name === 'AbortError' ? 'context canceled' : goNetworkError(error, dialed);
  return new UpstreamError(why, { cause: error });
}

function secureContext(ca: string, client: ClientProof | undefined): SecureContext {
  const unusable = 'unable to load root certificates: unable to parse bytes as PEM block';
  if (ca !== '' && !ca.includes('-----BEGIN CERTIFICATE-----')) throw new UpstreamSetupError(unusable);
  try {
    return createSecureContext({
      ...(ca === '' ? {} : { ca }),
      ...(client === undefined ? {} : { cert: client.certPem, key: client.keyPem }),
      minVersion: 'TLSv1.2',
    });
  } catch (error) {
    throw new UpstreamSetupError(unusable, { cause: error });
  }
}
