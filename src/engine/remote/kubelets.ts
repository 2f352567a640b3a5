/**
 * Sends requests to the kubelets of nodes over HTTPS. A kubelet must have a certificate of our CA for its address, and
 * gets a client certificate of ours. The subresources define the requests and interpret the responses.
 */
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { OutwardIdentity } from '#engine/auth/front-proxy.ts';
import { HttpsUpstream, UpstreamBusyError, UpstreamError } from '#engine/remote/https-upstream.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError, notFound, tooManyRequests } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';
import { isRecord } from '#kube/meta.ts';
import type { HttpsResponse } from '#lib/https/https-client.ts';
import { joinHostPort } from '#lib/https/https-server.ts';

const NODES = { group: '', plural: 'nodes' };
const MAX_OPEN = 2000;

interface KubeletRequest {
  /** Path including the query. */
  readonly path: string;
  /** True to accept any certificate of the kubelet. Our client certificate is still sent. */
  readonly insecure: boolean;
  /** Undefined for responses that may begin late. */
  readonly headersTimeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

interface KubeletParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Without an identity, no kubelet is trusted and none trusts us. */
  readonly identity: Pick<OutwardIdentity, 'caPem' | 'kubelet'> | undefined;
}

export class Kubelets {
  readonly #store: Store;
  readonly #verified: HttpsUpstream;
  readonly #unverified: HttpsUpstream;

  constructor({ store, clock, identity }: KubeletParts) {
    this.#store = store;
    const tls = { ca: identity?.caPem ?? '', client: identity?.kubelet };
    this.#verified = new HttpsUpstream({ tls, maxOpen: MAX_OPEN, clock });
    this.#unverified = new HttpsUpstream({ tls: { ...tls, insecure: true }, maxOpen: MAX_OPEN, clock });
  }

  /** Throws ApiError if the node does not exist or does not respond. */
  async get(node: string, { path, insecure, headersTimeoutMs, signal }: KubeletRequest): Promise<HttpsResponse> {
    const entry = this.#store.get('nodes', node);
    if (entry === undefined) throw notFound(NODES, node);
    const endpoint = findNodeEndpoint(decodeStored(entry.bytes)['status']);
    if (typeof endpoint === 'string') throw new ApiError(500, '', endpoint);
    const { host, port } = endpoint;
    const headers = { Accept: '*/*', 'User-Agent': 'kube-apiserver' };
    try {
      return await (insecure ? this.#unverified : this.#verified).open(
        { host, port, serverName: host },
        { method: 'GET', path, headers, headersTimeoutMs, signal },
      );
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      if (error instanceof UpstreamBusyError) throw tooManyRequests(error.message, 1);
      const url = `https://${joinHostPort(host, port)}${path}`;
      throw new ApiError(500, '', `Get ${JSON.stringify(url)}: ${error.message}`, { cause: error });
    }
  }

  close(): void {
    this.#verified.close();
    this.#unverified.close();
  }
}

interface NodeEndpoint {
  readonly host: string;
  readonly port: number;
}

const KUBELET_PORT = 10_250;
const PREFERRED = ['InternalIP', 'Hostname'] as const;

/** Returns the address of a node's kubelet from its status, or as a string why there is none. */
function findNodeEndpoint(status: unknown): NodeEndpoint | string {
  const { addresses, daemonEndpoints } = isRecord(status) ? status : {};
  const known = Array.isArray(addresses) ? addresses.filter(isRecord) : [];
  for (const type of PREFERRED) {
    const host = known.find((one) => one['type'] === type)?.['address'];
    if (typeof host === 'string' && host !== '') return { host, port: kubeletPort(daemonEndpoints) };
  }
  const shown = known.map(({ type, address }) => `{${String(type)} ${String(address)}}`).join(' ');
  return `no preferred addresses found; known addresses: [${shown}]`;
}

function kubeletPort(daemonEndpoints: unknown): number {
  const endpoint = isRecord(daemonEndpoints) ? daemonEndpoints['kubeletEndpoint'] : undefined;
  const port = isRecord(endpoint) ? endpoint['Port'] : undefined;
  return typeof port === 'number' && port > 0 ? port : KUBELET_PORT;
}
