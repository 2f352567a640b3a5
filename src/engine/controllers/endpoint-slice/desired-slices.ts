/** Computes the EndpointSlices of a Service from its pods, as Kubernetes does. Pure. */
import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import type { EngineSlice, SliceEndpoint, SlicePort } from '#engine/controllers/endpoint-slice/kinds.ts';
import type { EnginePod } from '#engine/controllers/kinds.ts';
import { SERVICE_NAME_LABEL } from '#kube/cluster-kinds.ts';
import { isHeadless } from '#engine/registry/kinds/core/service-rules.ts';
import type { Service, ServicePortSpec } from '#engine/registry/kinds/core/service-schema.ts';
import { findCondition } from '#kube/conditions.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export const MANAGED_BY_LABEL = 'endpointslice.kubernetes.io/managed-by';
export const MANAGER = 'endpointslice-controller.k8s.io';
const HEADLESS_LABEL = 'service.kubernetes.io/headless';
const MAX_ENDPOINTS = 100;
const SUFFIX_LENGTH = 5;
/** The alphabet that Kubernetes uses for generated names. */
const ALPHABET = 'bcdfghjklmnpqrstvwxz2456789';

type Family = 'IPv4' | 'IPv6';

interface PodEndpoint {
  readonly endpoint: SliceEndpoint;
  readonly ports: readonly SlicePort[];
  readonly pod: Stored<EnginePod>;
}

/** Returns the slices that a Service with a selector should have. Names depend only on the Service and the content. */
export function desiredSlices(service: Stored<Service>, pods: readonly Stored<EnginePod>[]): EngineSlice[] {
  return familiesOf(service).flatMap((family) => {
    const endpoints = uniqueEndpoints(pods.flatMap((pod) => endpointOf(service, pod, family)));
    const groups = Map.groupBy(endpoints, ({ ports }) => JSON.stringify(ports));
    const slices = [...groups.values()].flatMap((group) =>
      chunksOf(group).map((chunk, i) => buildSlice(service, { family, index: i, ports: group[0]!.ports, chunk })),
    );
    // A Service without pods still has a slice, which shows that the controller has seen it.
    return slices.length > 0 ? slices : [buildSlice(service, { family, index: 0, ports: [], chunk: [] })];
  });
}

function familiesOf({ spec }: Service): readonly Family[] {
  if (spec.ipFamilies?.length) return spec.ipFamilies;
  // Stored before families were allocated.
  return spec.clusterIP !== undefined && isIP(spec.clusterIP) === 6 ? ['IPv6'] : ['IPv4'];
}

function endpointOf(service: Stored<Service>, pod: Stored<EnginePod>, family: Family): PodEndpoint[] {
  const { phase, conditions, podIP, podIPs = [] } = pod.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed') return [];
  const addresses = podIPs.length > 0 ? podIPs.map(({ ip }) => ip) : [podIP ?? ''];
  const address = addresses.find((ip) => isIP(ip ?? '') === (family === 'IPv4' ? 4 : 6));
  if (!address) return [];
  const { metadata, spec } = pod;
  const serving = findCondition(conditions, 'Ready')?.status === 'True';
  const terminating = isDeleting(pod);
  const ready = service.spec.publishNotReadyAddresses === true || (serving && !terminating);
  const { namespace = '', name, uid } = metadata;
  const endpoint: SliceEndpoint = {
    addresses: [address],
    conditions: { ready, serving, terminating },
    ...(spec.nodeName && { nodeName: spec.nodeName }),
    targetRef: { kind: 'Pod', namespace, name, uid },
    ...(spec.hostname && spec.subdomain === service.metadata.name && { hostname: spec.hostname }),
  };
  const ports = (service.spec.ports ?? []).flatMap((port) => resolvePort(port, pod));
  return [{ endpoint, ports, pod }];
}

/** Returns no port if the pod has none with the name. */
function resolvePort(
  { name = '', protocol = 'TCP', port, targetPort, appProtocol }: ServicePortSpec,
  { spec }: EnginePod,
): SlicePort[] {
  const base = { name, protocol, ...(appProtocol !== undefined && { appProtocol }) };
  if (typeof targetPort !== 'string') return [{ ...base, port: targetPort || port }];
  const named = (spec.containers ?? [])
    .flatMap(({ ports = [] }) => ports)
    .find((candidate) => candidate.name === targetPort && (candidate.protocol ?? 'TCP') === protocol);
  return named === undefined ? [] : [{ ...base, port: named.containerPort }];
}

/**
 * Keeps one endpoint for each address. While a guest moves, its two pods have the same address: the one that is ready
 * wins, otherwise the one that is not being deleted, otherwise the older.
 */
function uniqueEndpoints(endpoints: readonly PodEndpoint[]): PodEndpoint[] {
  const rank = ({ endpoint: { conditions = {} } }: PodEndpoint) =>
    (conditions.serving && !conditions.terminating ? 0 : 4) +
    (conditions.serving ? 0 : 2) +
    (conditions.terminating ? 1 : 0);
  const age = ({ pod: { metadata } }: PodEndpoint) => `${metadata.creationTimestamp ?? ''} ${metadata.name}`;
  const best = new Map<string, PodEndpoint>();
  for (const candidate of endpoints) {
    const address = candidate.endpoint.addresses[0]!;
    const present = best.get(address);
    const isBetter =
      present === undefined ||
      rank(candidate) < rank(present) ||
      (rank(candidate) === rank(present) && age(candidate) < age(present));
    if (isBetter) best.set(address, candidate);
  }
  return [...best.values()].sort((a, b) => (a.pod.metadata.name < b.pod.metadata.name ? -1 : 1));
}

function chunksOf<T>(items: readonly T[]): T[][] {
  const chunks: T[][] = [];
  for (let i = 0; i < items.length; i += MAX_ENDPOINTS) chunks.push(items.slice(i, i + MAX_ENDPOINTS));
  return chunks;
}

interface SliceParts {
  readonly family: Family;
  readonly index: number;
  readonly ports: readonly SlicePort[];
  readonly chunk: readonly PodEndpoint[];
}

function buildSlice(service: Stored<Service>, { family, index, ports, chunk }: SliceParts): EngineSlice {
  const { name, namespace, uid, labels = {} } = service.metadata;
  const { [SERVICE_NAME_LABEL]: _name, [MANAGED_BY_LABEL]: _manager, [HEADLESS_LABEL]: _headless, ...copied } = labels;
  const group = isCommon(service, ports) ? '' : JSON.stringify(ports);
  const id = `${uid} ${family} ${group} ${index}`;
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `${name}-${suffixOf(id)}`,
      namespace,
      labels: {
        ...copied,
        [SERVICE_NAME_LABEL]: name,
        [MANAGED_BY_LABEL]: MANAGER,
        ...(isHeadless(service.spec) && { [HEADLESS_LABEL]: '' }),
      },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true }],
    },
    addressType: family,
    endpoints: chunk.map(({ endpoint }) => endpoint),
    ports: [...ports],
  };
}

/** Reports whether no port of the slice depends on its pods: then all pods are in slices with the same ports. */
function isCommon({ spec }: Service, ports: readonly SlicePort[]): boolean {
  return ports.length === 0 || (spec.ports ?? []).every(({ targetPort }) => typeof targetPort !== 'string');
}

function suffixOf(text: string): string {
  const digest = createHash('sha256').update(text).digest();
  return Array.from({ length: SUFFIX_LENGTH }, (_, i) => ALPHABET[digest.readUInt16BE(2 * i) % ALPHABET.length]).join(
    '',
  );
}
