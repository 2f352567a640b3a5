/** Allocates the addresses and node ports of one Service. Pure, except that it modifies the given spec. */
import { completeIpFamilies } from '#engine/admission/service-addresses/ip-families.ts';
import {
  canonicalIp,
  findFreeAddress,
  findFreePort,
  isServiceAddress,
  type PickIndex,
  type ServiceNetworks,
  subnetOf,
} from '#engine/admission/service-addresses/service-networks.ts';
import { hasHealthCheckPort, hasNodePorts, isHeadless } from '#engine/registry/kinds/core/service-rules.ts';
import type { ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import { deepEqual } from '#kube/deep.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';
import { formatIpNetwork } from '#lib/ip-address.ts';

/** The addresses and node ports of other Services. */
export interface Taken {
  hasAddress(ip: string): boolean;
  hasPort(port: number): boolean;
}

interface Allocation {
  readonly networks: ServiceNetworks;
  readonly taken: Taken;
  readonly pick: PickIndex;
}

/** `exhausted` names the range without a free value. */
type AllocationResult = { readonly errors: readonly FieldError[] } | { readonly exhausted: string };

const PORT_TAKEN = 'provided port is already allocated';

export function allocateService(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  allocation: Allocation,
): AllocationResult {
  alignClusterIps(spec, old);
  if (old !== undefined) keepAllocated(spec, old);
  const errors = completeIpFamilies(spec, old, allocation.networks);
  if (errors.length > 0) return { errors };
  const addressed = allocateAddresses(spec, old, allocation);
  if (addressed !== undefined) return addressed;
  return allocatePorts(spec, old, allocation) ?? { errors: [] };
}

/** Makes clusterIPs follow clusterIP for clients that know only the latter. */
function alignClusterIps(spec: ServiceSpec, old: ServiceSpec | undefined): void {
  if (old === undefined) {
    if (spec.clusterIP) spec.clusterIPs ??= [spec.clusterIP];
    return;
  }
  if (!deepEqual(spec.clusterIPs, old.clusterIPs)) return;
  if (old.clusterIP && !spec.clusterIP) delete spec.clusterIPs;
  else if (spec.clusterIP && spec.clusterIP !== old.clusterIP) spec.clusterIPs = [spec.clusterIP];
}

/** Keeps allocated values that an update does not name. */
function keepAllocated(spec: ServiceSpec, old: ServiceSpec): void {
  if (spec.type !== 'ExternalName' && old.type !== 'ExternalName' && old.clusterIP) {
    spec.clusterIP ||= old.clusterIP;
    if (!spec.clusterIPs?.length && spec.clusterIP === old.clusterIP && old.clusterIPs)
      spec.clusterIPs = old.clusterIPs;
  }
  if (hasNodePorts(spec) && hasNodePorts(old)) {
    const named = new Set((spec.ports ?? []).map(({ nodePort }) => nodePort));
    const before = new Map((old.ports ?? []).map(({ name = '', nodePort }) => [name, nodePort]));
    for (const port of spec.ports ?? []) {
      const nodePort = before.get(port.name ?? '');
      if (!port.nodePort && nodePort && !named.has(nodePort)) port.nodePort = nodePort;
    }
  }
  if (hasHealthCheckPort(spec) && hasHealthCheckPort(old) && !spec.healthCheckNodePort && old.healthCheckNodePort) {
    spec.healthCheckNodePort = old.healthCheckNodePort;
  }
}

/** Returns undefined if all addresses could be allocated. */
function allocateAddresses(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  { networks, taken, pick }: Allocation,
): AllocationResult | undefined {
  if (spec.type === 'ExternalName' || isHeadless(spec)) return undefined;
  const given = spec.clusterIPs ?? [];
  const all: string[] = [];
  for (const [i, family] of (spec.ipFamilies ?? []).entries()) {
    const ip = given[i];
    const subnet = subnetOf(networks, family);
    if (ip !== undefined && (old?.clusterIPs ?? []).includes(ip)) {
      all.push(ip);
    } else if (subnet === undefined) {
      // Only a Service that was stored under another configuration has such a family.
      if (ip !== undefined) all.push(ip);
    } else if (ip === undefined) {
      const found = findFreeAddress(subnet, (candidate) => taken.hasAddress(candidate), pick);
      if (found === undefined) return { exhausted: 'failed to allocate a serviceIP: range is full' };
      all.push(found);
    } else {
      const problem = addressProblem(ip, { isKnown: isServiceAddress(subnet, ip), taken });
      const range = formatIpNetwork(subnet);
      if (problem === 'outside') {
        const detail = `the provided IP (${ip}) is not in the valid range. The range of valid IPs is ${range}`;
        return { errors: [invalidIp(given, ip, detail)] };
      }
      if (problem === 'taken') return { errors: [takenIp(given, ip)] };
      all.push(ip);
    }
  }
  if (all.length === 0) return undefined;
  spec.clusterIPs = all;
  spec.clusterIP = all[0]!;
  return undefined;
}

function addressProblem(
  ip: string,
  { isKnown, taken }: { readonly isKnown: boolean; readonly taken: Taken },
): 'outside' | 'taken' | undefined {
  if (!isKnown) return 'outside';
  return taken.hasAddress(canonicalIp(ip)) ? 'taken' : undefined;
}

const invalidIp = (clusterIPs: readonly string[], ip: string, detail: string): FieldError =>
  invalidValue('spec.clusterIPs', clusterIPs, `failed to allocate IP ${ip}: ${detail}`);

const takenIp = (clusterIPs: readonly string[], ip: string): FieldError =>
  invalidIp(clusterIPs, ip, 'provided IP is already allocated');

function allocatePorts(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  { networks: { nodePorts: range }, taken, pick }: Allocation,
): AllocationResult | undefined {
  const held = new Set(portsOf(old));
  const own = new Set(portsOf(spec));
  const choose = () => findFreePort(range, (port) => taken.hasPort(port) || own.has(port), pick);
  if (hasNodePorts(spec)) {
    const byPort = new Map<number, number>();
    for (const [i, port] of (spec.ports ?? []).entries()) {
      if (port.nodePort) {
        const problem = held.has(port.nodePort) ? undefined : portProblem(port.nodePort, { range, taken });
        if (problem !== undefined) return { errors: [invalidValue(portField(i), port.nodePort, problem)] };
      } else if (spec.type === 'NodePort' || spec.allocateLoadBalancerNodePorts !== false) {
        // TCP and UDP of the same port share a node port.
        const found = byPort.get(port.port) ?? choose();
        if (found === undefined) return { exhausted: 'failed to allocate a nodePort: range is full' };
        port.nodePort = found;
        own.add(found);
      }
      if (port.nodePort) byPort.set(port.port, port.nodePort);
    }
  }
  if (!hasHealthCheckPort(spec)) return undefined;
  const { healthCheckNodePort } = spec;
  if (!healthCheckNodePort) {
    const found = choose();
    if (found === undefined) return { exhausted: 'failed to allocate a HealthCheck NodePort 0: range is full' };
    spec.healthCheckNodePort = found;
    return undefined;
  }
  const problem = held.has(healthCheckNodePort) ? undefined : portProblem(healthCheckNodePort, { range, taken });
  if (problem === undefined) return undefined;
  return { exhausted: `failed to allocate requested HealthCheck NodePort ${healthCheckNodePort}: ${problem}` };
}

const portField = (i: number) => `spec.ports[${i}].nodePort`;

function portProblem(
  port: number,
  { range: { first, last }, taken }: { readonly range: ServiceNetworks['nodePorts']; readonly taken: Taken },
): string | undefined {
  if (port < first || port > last) {
    return `provided port is not in the valid range. The range of valid ports is ${first}-${last}`;
  }
  return taken.hasPort(port) ? PORT_TAKEN : undefined;
}

/** Returns the canonical addresses that a Service uses. */
export function addressesOf(spec: ServiceSpec | undefined): string[] {
  if (spec === undefined || spec.type === 'ExternalName' || isHeadless(spec)) return [];
  return (spec.clusterIPs ?? (spec.clusterIP ? [spec.clusterIP] : [])).map((ip) => {
    try {
      return canonicalIp(ip);
    } catch {
      // Stored before addresses were checked.
      return ip;
    }
  });
}

/** Returns the node ports that a Service uses. */
export function portsOf(spec: ServiceSpec | undefined): number[] {
  if (spec === undefined || !hasNodePorts(spec)) return [];
  const ports = (spec.ports ?? []).map(({ nodePort }) => nodePort ?? 0);
  return [...ports, spec.healthCheckNodePort ?? 0].filter((port) => port > 0);
}

/** Returns the values of a Service that another one uses now. */
export function findConflicts(spec: ServiceSpec, taken: Taken): FieldError[] {
  const ports = spec.ports ?? [];
  return [
    ...addressesOf(spec)
      .filter((ip) => taken.hasAddress(ip))
      .map((ip) => takenIp(spec.clusterIPs ?? [], ip)),
    ...(hasNodePorts(spec) ? ports : []).flatMap(({ nodePort }, i) =>
      nodePort && taken.hasPort(nodePort) ? [invalidValue(portField(i), nodePort, PORT_TAKEN)] : [],
    ),
  ];
}
