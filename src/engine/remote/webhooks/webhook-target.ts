/** Resolves the URL or Service of a webhook. Makes no calls. */
import { CallFailure } from '#engine/remote/webhooks/call-failure.ts';
import type { DialTarget } from '#engine/remote/go-network-error.ts';
import { resolveService } from '#engine/remote/service-address.ts';
import type { ServiceReference, WebhookClientConfig } from '#engine/registry/webhook-client-config.ts';
import type { Store } from '#engine/store/store.ts';

const DEFAULT_PORT = 443;

export interface WebhookTarget {
  /** `https://name.namespace.svc:443`, as messages show it, without a path. */
  readonly origin: string;
  readonly path: string;
  /** The Host header. */
  readonly authority: string;
  /**
   * Returns addresses to connect to, in order, until one responds. Resolved for each call, because Services change.
   * Throws CallFailure.
   */
  dial(): readonly DialTarget[];
}

export function resolveWebhookTarget({ url, service }: WebhookClientConfig, store: Store): WebhookTarget {
  if (service !== undefined) return serviceTarget(service, store);
  const parsed = URL.parse(url ?? '');
  if (parsed === null || parsed.protocol !== 'https:') {
    throw new CallFailure('webhook configuration must have either service or URL');
  }
  const host = parsed.hostname.replace(/^\[(.*)\]$/, '$1');
  const dialed = { host, port: parsed.port === '' ? DEFAULT_PORT : Number(parsed.port), serverName: host };
  return {
    origin: parsed.origin,
    path: parsed.pathname,
    authority: parsed.host,
    dial: () => [dialed],
  };
}

function serviceTarget(
  { namespace, name, path = '', port = DEFAULT_PORT }: ServiceReference,
  store: Store,
): WebhookTarget {
  const serverName = `${name}.${namespace}.svc`;
  const authority = `${serverName}:${port}`;
  return {
    origin: `https://${authority}`,
    path: path.startsWith('/') ? path : `/${path}`,
    authority,
    dial() {
      const found = resolveService(store, { namespace, name, port });
      if ('unresolved' in found) throw new CallFailure(found.message);
      return found.servers.map((server) => ({ ...server, serverName }));
    },
  };
}
