/**
 * Computes where the traffic of Services goes on one host, from Services and EndpointSlices. Pure: the same objects give the
 * same result on every agent of a host.
 */
import { isIP } from 'node:net';
import type { RoutedService, RoutedSlice } from '#node/services/kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { networkContains, parseIpAddress, parseIpNetwork } from '#lib/ip-address.ts';

export interface Endpoint {
  readonly ip: string;
  readonly port: number;
  /** True if the endpoint is on this host. */
  readonly isLocal: boolean;
  /** True if the address is one of guests. Users can write any address into an EndpointSlice. */
  readonly isGuest: boolean;
}

/** One port of a Service in one family. */
export interface ServiceForward {
  /** NAMESPACE/NAME:PORT, unique together with protocol and family. */
  readonly name: string;
  readonly family: 4 | 6;
  readonly protocol: 'tcp' | 'udp';
  readonly port: number;
  readonly nodePort: number | undefined;
  readonly clusterIp: string;
  /** Addresses of a load balancer that is this host. */
  readonly balancerIps: readonly string[];
  /** Endpoints for traffic to the cluster IP. */
  readonly internal: readonly Endpoint[];
  /** Endpoints for traffic to node ports and load balancers. */
  readonly external: readonly Endpoint[];
  /** True if connections of one client go to the same endpoint. */
  readonly hasAffinity: boolean;
}

interface RoutedObjects {
  readonly services: readonly Stored<RoutedService>[];
  /** Returns the slices of the Service with this key. */
  slicesOf(namespace: string, name: string): readonly RoutedSlice[];
  /** Reports whether a node is on this host. */
  isLocalNode(name: string): boolean;
  /** Reports whether an address is one of guests, and not one of a host. */
  isGuest(ip: string): boolean;
  /** The families in which endpoints of other hosts can be used. */
  readonly remoteFamilies: ReadonlySet<4 | 6>;
}

interface ForwardPlan {
  readonly forwards: readonly ServiceForward[];
  /** Why ports are not forwarded, for the log. */
  readonly ignored: readonly string[];
}

/** More would make the rule set slow to load; nobody runs as many on one machine. */
const MAX_FORWARDS = 10_000;
const MAX_ENDPOINTS = 500;

export function planForwards({ services, slicesOf, isLocalNode, isGuest, remoteFamilies }: RoutedObjects): ForwardPlan {
  const forwards: ServiceForward[] = [];
  const ignored: string[] = [];
  for (const service of services.toSorted(compareAge)) {
    const { namespace = '', name } = service.metadata;
    const { spec = {} } = service;
    for (const clusterIp of clusterIpsOf(service)) {
      const family = isIP(clusterIp) === 6 ? 6 : 4;
      for (const port of spec.ports ?? []) {
        const { protocol = 'TCP', name: portName = '' } = port;
        const label = `${namespace}/${name}:${portName || port.port}`;
        const transport = protocol === 'TCP' ? 'tcp' : protocol === 'UDP' ? 'udp' : undefined;
        if (transport === undefined) {
          ignored.push(`${label}: ${protocol} is not forwarded`);
          continue;
        }
        const all = endpointsOf(slicesOf(namespace, name), { family, portName, protocol }, { isLocalNode, isGuest });
        const usable = all.filter(({ isLocal }) => isLocal || remoteFamilies.has(family)).slice(0, MAX_ENDPOINTS);
        const local = usable.filter(({ isLocal }) => isLocal);
        forwards.push({
          name: label,
          family,
          protocol: transport,
          port: port.port,
          nodePort: spec.type === 'NodePort' || spec.type === 'LoadBalancer' ? port.nodePort : undefined,
          clusterIp,
          balancerIps: balancerIpsOf(service, family),
          internal: spec.internalTrafficPolicy === 'Local' ? local : usable,
          external: spec.externalTrafficPolicy === 'Local' ? local : usable,
          hasAffinity: spec.sessionAffinity === 'ClientIP',
        });
      }
    }
  }
  if (forwards.length > MAX_FORWARDS)
    ignored.push(`${forwards.length - MAX_FORWARDS} ports above the limit of ${MAX_FORWARDS}`);
  return { forwards: forwards.slice(0, MAX_FORWARDS), ignored };
}

/** Orders by age, so that of two Services that claim the same address, the older one keeps it. */
function compareAge(a: Stored<RoutedService>, b: Stored<RoutedService>): number {
  const keyOf = ({ metadata }: Stored<RoutedService>) =>
    `${metadata.creationTimestamp} ${metadata.namespace ?? ''}/${metadata.name}`;
  return keyOf(a) < keyOf(b) ? -1 : 1;
}

function clusterIpsOf({ spec = {} }: RoutedService): readonly string[] {
  if (spec.type === 'ExternalName') return [];
  const all = spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : []);
  return all.filter(isAddress);
}

function balancerIpsOf({ spec = {}, status }: RoutedService, family: 4 | 6): string[] {
  if (spec.type !== 'LoadBalancer') return [];
  const ingress = status?.loadBalancer?.ingress ?? [];
  const ips = ingress.flatMap(({ ip = '', ipMode = 'VIP' }) => (ipMode === 'VIP' ? [ip] : []));
  return ips.filter((ip) => isAddress(ip) && isIP(ip) === family && !isLoopback(ip));
}

/** Reports whether a text is an address that rules can contain: not one with a zone. */
export const isAddress = (ip: string): boolean => isIP(ip) !== 0 && !ip.includes('%');

/** IPv4 addresses are also written as ::ffff:127.0.0.1. */
const LOOPBACKS = ['127.0.0.0/8', '::1/128', '::ffff:7f00:0/104'].map(parseIpNetwork);

/** Reports whether an address is one of loopback, in any notation. */
export function isLoopback(ip: string): boolean {
  const address = parseIpAddress(ip);
  return LOOPBACKS.some((network) => networkContains(network, address));
}

interface WantedPort {
  readonly family: 4 | 6;
  readonly portName: string;
  readonly protocol: string;
}

/** Returns ready endpoints; if there are none, those that end but still serve. */
function endpointsOf(
  slices: readonly RoutedSlice[],
  { family, portName, protocol }: WantedPort,
  { isLocalNode, isGuest }: Pick<RoutedObjects, 'isLocalNode' | 'isGuest'>,
): Endpoint[] {
  const found = slices
    .filter(({ addressType }) => addressType === `IPv${family}`)
    .flatMap(({ endpoints = [], ports = [] }) => {
      const port = ports.find(
        (candidate) => (candidate.name ?? '') === portName && (candidate.protocol ?? 'TCP') === protocol,
      )?.port;
      if (port === undefined) return [];
      return endpoints.map(({ addresses, conditions = {}, nodeName }) => ({
        endpoint: { ip: addresses[0] ?? '', port, isLocal: nodeName === undefined || isLocalNode(nodeName) },
        isReady: conditions.ready !== false,
        isEnding: conditions.serving === true && conditions.terminating === true,
      }));
    })
    .filter(({ endpoint: { ip } }) => isAddress(ip) && isIP(ip) === family && !isLoopback(ip))
    .map((found) => ({ ...found, endpoint: { ...found.endpoint, isGuest: isGuest(found.endpoint.ip) } }));
  const ready = found.filter(({ isReady }) => isReady);
  const chosen = ready.length > 0 ? ready : found.filter(({ isEnding }) => isEnding);
  const unique = new Map(chosen.map(({ endpoint }) => [`${endpoint.ip} ${endpoint.port}`, endpoint]));
  return [...unique.entries()].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, endpoint]) => endpoint);
}
