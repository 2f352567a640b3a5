/**
 * Sends requests to one kind of server (an aggregated API, the kubelets) over HTTPS and HTTP/1.1: bodies as streams,
 * upgrades as raw connections. The number of open requests and the times for connecting and for the first response are
 * bounded. Redirects are not followed. Only reads on a kept-alive connection that turns out to be closed are retried.
 */
import { Agent, request, type AgentOptions, type RequestOptions } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Duplex, Readable } from 'node:stream';
import { createSecureContext, type SecureContext, type TLSSocket } from 'node:tls';
import { goNetworkError, joinHostPort, type DialTarget } from '#engine/remote/go-network-error.ts';
import { MAX_HEADER_BYTES } from '#engine/request/limits.ts';
import type { Clock } from '#lib/clock.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_KEPT_SOCKETS = 16;

/** A client certificate and key in PEM format. */
export interface ClientCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

export interface UpstreamTls {
  /** PEM; '' = the system's root certificates. */
  readonly ca: string;
  /** Returns the current client certificate; the same value until it is renewed. */
  readonly client?: (() => ClientCertificate) | undefined;
  /** Accepts any server certificate. */
  readonly insecure?: boolean;
}

export interface UpstreamRequest {
  readonly method: string;
  /** Path including the query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body?: Readable | Buffer | undefined;
  /** True to upgrade the connection to the protocol in `headers`. */
  readonly upgrade?: boolean;
  /** Undefined for responses that may begin late. */
  readonly headersTimeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

export interface UpgradedConnection {
  readonly incoming: IncomingMessage;
  readonly connection: Duplex;
  readonly head: Buffer;
}

/** The response. A refused upgrade is an ordinary response. */
export type UpstreamResponse = { readonly incoming: IncomingMessage } | UpgradedConnection;

/** Has Go's message for the reason. */
export class UpstreamError extends Error {
  override name = 'UpstreamError';
}

/** The configuration of the server is invalid. */
export class UpstreamSetupError extends UpstreamError {
  override name = 'UpstreamSetupError';
}

/** Too many requests are open. */
export class UpstreamBusyError extends UpstreamError {
  override name = 'UpstreamBusyError';
}

export interface HttpsUpstreamOptions {
  readonly tls: UpstreamTls;
  readonly maxOpen: number;
  readonly clock: Clock;
}

interface Agents {
  readonly client: ClientCertificate | undefined;
  /** For reads, which may be retried if a kept-alive connection was closed. */
  readonly kept: Agent;
  /** For other requests, each on its own connection. */
  readonly fresh: Agent;
}

export class HttpsUpstream {
  readonly #options: HttpsUpstreamOptions;
  #agents: Agents | undefined;
  /** Agents from before a renewal with pending requests. */
  readonly #outdated = new Set<Agent>();
  #open = 0;
  #retired = false;

  constructor(options: HttpsUpstreamOptions) {
    this.#options = options;
  }

  /** Rejects with UpstreamError. */
  async open(dialed: DialTarget, request: UpstreamRequest): Promise<UpstreamResponse> {
    const { maxOpen } = this.#options;
    if (this.#open >= maxOpen) throw new UpstreamBusyError(`too many requests are open; the limit is ${maxOpen}`);
    const repeatable = request.body === undefined && request.upgrade !== true && isRead(request.method);
    const options = { ...requestOptions(dialed, request), agent: this.#agent(repeatable) };
    this.#open++;
    let response: UpstreamResponse | undefined;
    try {
      for (let left = repeatable ? MAX_KEPT_SOCKETS : 0; response === undefined; left--) {
        response = await this.#attempt(options, dialed, request, left > 0);
      }
    } catch (error) {
      this.#over();
      throw error;
    }
    const held = 'connection' in response ? response.connection : response.incoming;
    if (held.destroyed) this.#over();
    else held.once('close', () => this.#over());
    return response;
  }

  /** Stops using the upstream: closes its connections after the last request. */
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

  /** Closes kept-alive connections and those of pending requests. */
  close(): void {
    this.#agents?.kept.destroy();
    this.#agents?.fresh.destroy();
    for (const agent of this.#outdated) agent.destroy();
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
      this.#retireAgents();
      const [reads, others] = [new Agent({ ...options, keepAlive: true }), new Agent({ ...options, keepAlive: false })];
      this.#agents = { client, kept: reads, fresh: others };
    }
    return kept ? this.#agents.kept : this.#agents.fresh;
  }

  /** Closes idle connections; others end with their requests. */
  #retireAgents(): void {
    for (const agent of this.#outdated) if (Object.keys(agent.sockets).length === 0) this.#outdated.delete(agent);
    if (this.#agents === undefined) return;
    const { kept, fresh } = this.#agents;
    for (const sockets of Object.values(kept.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
    this.#outdated.add(kept).add(fresh);
  }

  /** Returns undefined if a kept-alive connection was closed before it accepted the request. */
  #attempt(
    options: RequestOptions,
    dialed: DialTarget,
    { body, headersTimeoutMs, upgrade }: UpstreamRequest,
    again: boolean,
  ): Promise<UpstreamResponse | undefined> {
    return new Promise((resolve, reject) => {
      let outgoing: ClientRequest;
      try {
        outgoing = request(options);
      } catch (error) {
        // For example an invalid header.
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
        // The reader of the response sees its end; without a listener an early end would be an uncaught error.
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

  #bound(outgoing: ClientRequest, { host, port }: DialTarget, headersTimeoutMs: number | undefined): () => void {
    const { clock } = this.#options;
    const fail = (why: string) => () => outgoing.destroy(new UpstreamError(why));
    const connected = clock.after(CONNECT_TIMEOUT_MS, fail(`dial tcp ${joinHostPort(host, port)}: i/o timeout`));
    const gotHeaders =
      headersTimeoutMs === undefined
        ? () => {}
        : clock.after(headersTimeoutMs, fail('net/http: timeout awaiting response headers'));
    outgoing.once('socket', (socket) => {
      if (outgoing.reusedSocket) connected();
      else (socket as TLSSocket).once('secureConnect', connected);
    });
    return () => {
      connected();
      gotHeaders();
    };
  }
}

function requestOptions({ host, port, serverName }: DialTarget, request: UpstreamRequest): RequestOptions {
  const { method, path, headers, signal } = request;
  return {
    method,
    host,
    port,
    path,
    signal,
    headers: { Host: joinHostPort(serverName, port), ...headers },
    maxHeaderSize: MAX_HEADER_BYTES,
    // An IP address is never sent as a server name; the certificate is still checked for it.
    servername: isIP(serverName) === 0 ? serverName : '',
  };
}

function send(outgoing: ClientRequest, body: Readable | Buffer | undefined): void {
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

const isRead = (method: string) => method === 'GET' || method === 'HEAD';

const CLOSED: ReadonlySet<string | undefined> = new Set(['ECONNRESET', 'EPIPE']);
const isClosed = ({ code }: NodeJS.ErrnoException) => CLOSED.has(code);

function upstreamError(error: Error, dialed: DialTarget): UpstreamError {
  const why = error.name === 'AbortError' ? 'context canceled' : goNetworkError(error, dialed);
  return new UpstreamError(why, { cause: error });
}

function secureContext(ca: string, client: ClientCertificate | undefined): SecureContext {
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
