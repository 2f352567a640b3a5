/**
 * Where a Service is reached, for webhooks and aggregated APIs alike. There is no service network: an address that this
 * machine can reach must stand in the Service. Only looks; nobody is called here.
 */
import { isIP } from 'node:net';
import { decodeStored } from '#engine/codec.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

const SERVICE_COLLECTION = 'services';

export interface ServicePort {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** Why not, as the Available condition of an APIService calls it. */
export type Unresolved = 'ServiceNotFound' | 'ServicePortError' | 'MissingEndpoints';

export type ServiceAddress = { readonly host: string } | { readonly unresolved: Unresolved; readonly message: string };

export function resolveService(store: Store, { namespace, name, port }: ServicePort): ServiceAddress {
  const entry = store.get(SERVICE_COLLECTION, `${namespace}/${name}`);
  if (entry === undefined) return unresolved('ServiceNotFound', `service "${name}" not found`);
  const { spec } = decodeStored(entry.bytes);
  const { type, externalName, externalIPs, clusterIP, ports } = isRecord(spec) ? spec : {};
  if (type === 'ExternalName') {
    if (typeof externalName === 'string' && externalName !== '') return { host: externalName };
    return unresolved('MissingEndpoints', `service "${name}" has no externalName`);
  }
  if (!listOf(ports).some((item) => isRecord(item) && item['port'] === port)) {
    return unresolved('ServicePortError', `no service port ${port} found for service "${name}"`);
  }
  for (const address of [listOf(externalIPs)[0], clusterIP]) {
    if (typeof address === 'string' && isIP(address) !== 0) return { host: address };
  }
  if (clusterIP === 'None') return unresolved('MissingEndpoints', 'cannot route to service with ClusterIP "None"');
  return unresolved('MissingEndpoints', `no endpoints available for service "${name}"`);
}

const unresolved = (why: Unresolved, message: string) => ({ unresolved: why, message });
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
