/**
 * One service that serves aggregated APIs: called as a function if it runs in this process, otherwise over HTTPS with
 * the user in headers and our client certificate as proof.
 */
import type { IssuedCertificate } from '#engine/auth/certificates.ts';
import { identityHeaders } from '#engine/aggregation/identity-headers.ts';
import type { RemoteApi } from '#engine/aggregation/remote-api.ts';
import { isForwarded, requestHeaders } from '#engine/remote/forwarded-headers.ts';
import { tryInOrder } from '#engine/remote/try-in-order.ts';
import {
  HttpsUpstream,
  UpstreamBusyError,
  UpstreamError,
  UpstreamSetupError,
  type UpstreamRequest,
} from '#engine/remote/https-upstream.ts';
import { plainText, relayResponse } from '#engine/remote/relay-response.ts';
import { resolveService, type ServicePort, type Unresolved } from '#engine/remote/service-address.ts';
import { withUser, type ApiRequest, type ApiResponse } from '#engine/request/request.ts';
import type { LocalServices } from '#engine/remote/local-services.ts';
import type { Store } from '#engine/store/store.ts';
import { tooManyRequests } from '#kube/api-error.ts';
import { isAmbiguous } from '#kube/request-target.ts';
import type { Clock } from '#lib/clock.ts';
import { joinHostPort } from '#lib/https/https-server.ts';
import { relayUpgrade } from '#lib/https/relay-upgrade.ts';

const MAX_OPEN = 2000;
const HEADERS_TIMEOUT_MS = 60_000;

export interface RemoteServiceParts {
  readonly store: Store;
  readonly services: LocalServices;
  readonly clock: Clock;
  /** Without a certificate, servers do not trust the user in the headers. */
  readonly frontProxy: (() => IssuedCertificate) | undefined;
}

/** The address, or why it cannot be resolved. */
type RemoteServiceAddress = 'local' | { readonly url: string } | { readonly unresolved: Unresolved };

export class RemoteService {
  readonly #service: ServicePort;
  readonly #parts: RemoteServiceParts;
  readonly #upstream: HttpsUpstream;

  constructor({ service, ca, insecure }: RemoteApi, parts: RemoteServiceParts) {
    this.#service = service;
    this.#parts = parts;
    const tls = { ca, insecure, client: parts.frontProxy };
    this.#upstream = new HttpsUpstream({ tls, maxOpen: MAX_OPEN, clock: parts.clock });
  }

  /** Resolves the current address. */
  resolveAddress(): RemoteServiceAddress {
    const { namespace, name } = this.#service;
    if (this.#parts.services.find(namespace, name)?.api !== undefined) return 'local';
    const found = resolveService(this.#parts.store, this.#service);
    if ('unresolved' in found) return { unresolved: found.unresolved };
    const [{ host, port }] = found.servers;
    return { url: `https://${joinHostPort(host, port)}` };
  }

  /** Throws ApiError, or the error of a local function; a server that does not respond is a 503. */
  send(request: ApiRequest): ApiResponse | Promise<ApiResponse> {
    const { namespace, name } = this.#service;
    // The path was authorized as we parse it; an ambiguous path that a server could parse differently is not forwarded.
    if (isAmbiguous(request.path)) return plainText(404, '404 page not found');
    const local = this.#parts.services.find(namespace, name)?.api;
    return local === undefined ? this.#proxy(request) : local(withUser(request, { keeps: isForwarded }));
  }

  /** Like `send`, but over HTTPS only; rejects with UpstreamError where `send` responds for the server. */
  async forward(request: ApiRequest): Promise<ApiResponse> {
    const { namespace, name } = this.#service;
    const found = resolveService(this.#parts.store, this.#service);
    if ('unresolved' in found) throw new UpstreamError(found.message);
    const serverName = `${name}.${namespace}.svc`;
    const outgoing = await upstreamRequest(request);
    // A body that is a stream can be sent only once.
    const isStream = outgoing.body !== undefined && !Buffer.isBuffer(outgoing.body);
    const dialed = found.servers.slice(0, isStream ? 1 : undefined).map((server) => ({ ...server, serverName }));
    const response = await tryInOrder(dialed, (one) => this.#upstream.open(one, outgoing));
    if ('connection' in response) return relayUpgrade(response);
    return relayResponse(response.incoming, request.method, this.#parts.clock);
  }

  /** Stops using the service; pending requests continue. */
  retire(): void {
    this.#upstream.retire();
  }

  close(): void {
    this.#upstream.close();
  }

  async #proxy(request: ApiRequest): Promise<ApiResponse> {
    if ('unresolved' in resolveService(this.#parts.store, this.#service)) return UNAVAILABLE();
    try {
      return await this.forward(request);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      if (error instanceof UpstreamBusyError) throw tooManyRequests(error.message, 1);
      if (error instanceof UpstreamSetupError) return plainText(500, error.message);
      return plainText(503, `error trying to reach service: ${error.message}`);
    }
  }
}

export const UNAVAILABLE = () => plainText(503, 'service unavailable');

async function upstreamRequest(request: ApiRequest): Promise<UpstreamRequest> {
  const { method, path, query, upgrade, signal } = request;
  const body = await bodyOf(request);
  const headers = {
    ...requestHeaders(request),
    ...identityHeaders(request.user),
    ...(upgrade === undefined ? {} : { Connection: 'Upgrade', Upgrade: upgrade }),
    ...framing(body, request.header?.('content-length')),
  };
  return {
    method,
    path: query.size === 0 ? path : `${path}?${query.toString()}`,
    headers,
    body,
    upgrade: upgrade !== undefined,
    headersTimeoutMs: HEADERS_TIMEOUT_MS,
    signal,
  };
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

async function bodyOf(request: ApiRequest): Promise<UpstreamRequest['body']> {
  const { method, upgrade } = request;
  if (upgrade !== undefined || BODILESS.has(method)) return undefined;
  if (request.header?.('content-length') === '0') return Buffer.alloc(0);
  return request.bodyStream?.() ?? request.body();
}

/** node would send the body of a DELETE without its length. */
function framing(body: UpstreamRequest['body'], announced: string | undefined): Record<string, string> {
  if (body === undefined) return {};
  const length = Buffer.isBuffer(body) ? String(body.length) : announced;
  return length === undefined ? { 'Transfer-Encoding': 'chunked' } : { 'Content-Length': length };
}
