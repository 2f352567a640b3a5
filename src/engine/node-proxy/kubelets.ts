/**
 * Requests to the kubelets of nodes, over HTTPS: a kubelet must have a certificate of our CA for its address, and sees
 * one of ours. What is asked, and what an answer means, is the subresource's business.
 */
import { decodeStored } from '#engine/codec.ts';
import type { OutwardIdentity } from '#engine/auth/front-proxy.ts';
import { nodeEndpoint } from '#engine/node-proxy/node-endpoint.ts';
import { joined } from '#engine/remote/go-network-error.ts';
import { HttpsUpstream, UpstreamBusyError, UpstreamError, type UpstreamAnswer } from '#engine/remote/https-upstream.ts';
import type { Store } from '#engine/store/store.ts';
import { ApiError, notFound, tooManyRequests } from '#kube/api-error.ts';
import type { Clock } from '#lib/clock.ts';

const NODES = { group: '', plural: 'nodes' };
const MAX_OPEN = 2000;

export interface KubeletRequest {
  /** With the query. */
  readonly path: string;
  /** Takes any certificate of the kubelet; ours is shown all the same. */
  readonly insecure: boolean;
  /** undefined = answers that begin only when there is something to tell. */
  readonly headersTimeoutMs: number | undefined;
  readonly signal: AbortSignal;
}

export interface KubeletParts {
  readonly store: Store;
  readonly clock: Clock;
  /** Without one no kubelet is believed, and none will believe us. */
  readonly identity: Pick<OutwardIdentity, 'caPem' | 'kubelet'> | undefined;
}

export class Kubelets {
  readonly #store: Store;
  readonly #checked: HttpsUpstream;
  readonly #unchecked: HttpsUpstream;

  constructor({ store, clock, identity }: KubeletParts) {
    this.#store = store;
    const tls = { ca: identity?.caPem ?? '', client: identity?.kubelet };
    this.#checked = new HttpsUpstream({ tls, maxOpen: MAX_OPEN, clock });
    this.#unchecked = new HttpsUpstream({ tls: { ...tls, insecure: true }, maxOpen: MAX_OPEN, clock });
  }

  /** Throws ApiError: where there is no such node, or no answer. */
  async get(node: string, { path, insecure, headersTimeoutMs, signal }: KubeletRequest): Promise<UpstreamAnswer> {
    const entry = this.#store.get('nodes', node);
    if (entry === undefined) throw notFound(NODES, node);
    const endpoint = nodeEndpoint(decodeStored(entry.bytes)['status']);
    if (typeof endpoint === 'string') throw new ApiError(500, '', endpoint);
    const { host, port } = endpoint;
    const headers = { Accept: '*/*', 'User-Agent': 'kube-apiserver' };
    try {
      return await (insecure ? this.#unchecked : this.#checked).open(
        { host, port, serverName: host },
        { method: 'GET', path, headers, headersTimeoutMs, signal },
      );
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      if (error instanceof UpstreamBusyError) throw tooManyRequests(error.message, 1);
      const url = `https://${joined(host, port)}${path}`;
      throw new ApiError(500, '', `Get ${JSON.stringify(url)}: ${error.message}`, { cause: error });
    }
  }

  close(): void {
    this.#checked.close();
    this.#unchecked.close();
  }
}
