/**
 * Resolves the address of a Service, for webhooks and aggregated APIs. The engine does not use allocated cluster IPs,
 * which only nodes route: the Service or its EndpointSlices must contain an address that this machine can reach. Makes no
 * calls.
 */
import { randomInt } from 'node:crypto';
import { isIP } from 'node:net';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import { SERVICE_NAME_LABEL } from '#kube/cluster-kinds.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord } from '#kube/meta.ts';

const SERVICE_COLLECTION = 'services';
const SLICE_COLLECTION = 'endpointslices.discovery.k8s.io';

export interface ServicePort {
  readonly namespace: string;
  readonly name: string;
  readonly port: number;
}

/** The reason of the Available condition of an APIService. */
export type Unresolved = 'ServiceNotFound' | 'ServicePortError' | 'MissingEndpoints';

interface Server {
  readonly host: string;
  readonly port: number;
}

type ServiceServers =
  | { readonly servers: readonly [Server, ...Server[]] }
  | { readonly unresolved: Unresolved; readonly message: string };

/** Returns all servers in the order to try them: the first is random, the others are fallbacks. */
export function resolveService(
  store: Store,
  { namespace, name, port }: ServicePort,
  pick: (count: number) => number = randomInt,
): ServiceServers {
  const entry = store.get(SERVICE_COLLECTION, `${namespace}/${name}`);
  if (entry === undefined) return unresolved('ServiceNotFound', `service "${name}" not found`);
  const { spec } = decodeStored(entry.bytes);
  const { type, externalName, externalIPs, clusterIP, ipFamilies, ports } = isRecord(spec) ? spec : {};
  if (type === 'ExternalName') {
    if (typeof externalName === 'string' && externalName !== '') return { servers: [{ host: externalName, port }] };
    return unresolved('MissingEndpoints', `service "${name}" has no externalName`);
  }
  const servicePort = recordsOf(ports).find((item) => item['port'] === port);
  if (servicePort === undefined) {
    return unresolved('ServicePortError', `no service port ${port} found for service "${name}"`);
  }
  const [external] = listOf(externalIPs);
  if (isAddress(external)) return { servers: [{ host: external, port }] };
  const all = serversOf(store, { namespace, name, portName: servicePort['name'] ?? '' });
  const at = all.length === 0 ? 0 : pick(all.length);
  const [first, ...others] = [...all.slice(at), ...all.slice(0, at)];
  if (first !== undefined) return { servers: [first, ...others] };
  // Stored before cluster IPs were allocated: an address that the user chose.
  if (isAddress(clusterIP) && ipFamilies === undefined) return { servers: [{ host: clusterIP, port }] };
  if (clusterIP === 'None') return unresolved('MissingEndpoints', 'cannot route to service with ClusterIP "None"');
  return unresolved('MissingEndpoints', `no endpoints available for service "${name}"`);
}

function serversOf(
  store: Store,
  { namespace, name, portName }: { readonly namespace: string; readonly name: string; readonly portName: unknown },
): Server[] {
  const { entries } = store.list(SLICE_COLLECTION, { prefix: `${namespace}/` });
  return entries.flatMap(({ bytes }) => {
    const { metadata, endpoints, ports } = decodeStored(bytes);
    if (metadata.labels?.[SERVICE_NAME_LABEL] !== name) return [];
    const { port } = recordsOf(ports).find((item) => (item['name'] ?? '') === portName) ?? {};
    if (typeof port !== 'number') return [];
    const ready = recordsOf(endpoints).filter(
      ({ conditions }) => !isRecord(conditions) || conditions['ready'] !== false,
    );
    return ready
      .flatMap(({ addresses }) => listOf(addresses).filter(isAddress).slice(0, 1))
      .map((host) => ({ host, port }));
  });
}

const unresolved = (why: Unresolved, message: string) => ({ unresolved: why, message });
const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const recordsOf = (value: unknown) => listOf(value).filter(isRecord);
const isAddress = (value: unknown): value is string => typeof value === 'string' && isIP(value) !== 0;
