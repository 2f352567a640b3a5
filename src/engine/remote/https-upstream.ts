/**
 * Sends requests to one kind of server (an aggregated API, the kubelets) over HTTPS and HTTP/1.1. Bounds the number of
 * open requests and the times for connecting and for the first response, and formats errors like Go. Reads share
 * kept-alive connections; other requests must not be repeated and have their own.
 */
import { MAX_HEADER_BYTES } from '#engine/request/limits.ts';
import { goNetworkError, UNUSABLE_CERTIFICATES } from '#engine/remote/go-network-error.ts';
import type { Clock } from '#lib/clock.ts';
import { HttpsClient, type HttpsRequest, type HttpsResponse } from '#lib/https/https-client.ts';
import { ClientIdentityError } from '#lib/https/https-error.ts';
import { joinHostPort } from '#lib/https/https-server.ts';
import type { DialTarget } from '#engine/remote/go-network-error.ts';

const CONNECT_TIMEOUT_MS = 10_000;
const MAX_KEPT_SOCKETS = 16;

/** A client certificate and key in PEM format. */
export interface ClientCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

interface UpstreamTls {
  /** PEM; '' = the system's root certificates. */
  readonly ca: string;
  /** Returns the current client certificate. */
  readonly client?: (() => ClientCertificate) | undefined;
  /** Accepts any server certificate. */
  readonly insecure?: boolean;
}

export type UpstreamRequest = Pick<HttpsRequest, 'method' | 'path' | 'headers' | 'body' | 'upgrade'> & {
  /** Undefined for responses that may begin late. */
  readonly headersTimeoutMs: number | undefined;
  readonly signal: AbortSignal;
};

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

interface HttpsUpstreamOptions {
  readonly tls: UpstreamTls;
  readonly maxOpen: number;
  readonly clock: Clock;
}

export class HttpsUpstream {
  readonly #tls: UpstreamTls;
  readonly #maxOpen: number;
  readonly #client: HttpsClient;
  #open = 0;

  constructor({ tls, maxOpen, clock }: HttpsUpstreamOptions) {
    this.#tls = tls;
    this.#maxOpen = maxOpen;
    this.#client = new HttpsClient({ maxSockets: maxOpen, maxKept: MAX_KEPT_SOCKETS, clock });
  }

  /** Rejects with UpstreamError. */
  async open(dialed: DialTarget, request: UpstreamRequest): Promise<HttpsResponse> {
    const maxOpen = this.#maxOpen;
    if (this.#open >= maxOpen) throw new UpstreamBusyError(`too many requests are open; the limit is ${maxOpen}`);
    const { ca, client, insecure } = this.#tls;
    const { certPem: cert, keyPem: key } = client?.() ?? {};
    const isRepeatable = request.body === undefined && request.upgrade !== true && isRead(request.method);
    this.#open++;
    let response: HttpsResponse;
    try {
      response = await this.#client.send(
        dialed,
        { ca: ca === '' ? undefined : ca, cert, key, insecure },
        {
          ...request,
          headers: { Host: joinHostPort(dialed.serverName, dialed.port), ...request.headers },
          connection: isRepeatable ? 'repeatable' : 'fresh',
          connectTimeoutMs: CONNECT_TIMEOUT_MS,
          maxHeaderBytes: MAX_HEADER_BYTES,
        },
      );
    } catch (error) {
      this.#open--;
      throw upstreamError(error, dialed);
    }
    const held = 'connection' in response ? response.connection : response.incoming;
    if (held.destroyed) this.#open--;
    else held.once('close', () => this.#open--);
    return response;
  }

  /** Stops using the upstream: closes its connections after their last request. */
  retire(): void {
    this.#client.retire();
  }

  /** Closes kept-alive connections and those of pending requests. */
  close(): void {
    this.#client.close();
  }
}

const isRead = (method: string) => method === 'GET' || method === 'HEAD';

function upstreamError(cause: unknown, dialed: DialTarget): UpstreamError {
  if (cause instanceof ClientIdentityError) return new UpstreamSetupError(UNUSABLE_CERTIFICATES, { cause });
  return new UpstreamError(goNetworkError(cause, dialed), { cause });
}
