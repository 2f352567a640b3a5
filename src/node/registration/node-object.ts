/** Builds the Node object of this agent. Labels and conditions of other components are kept. Pure. */
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import {
  HYPERVISOR_LABEL,
  MACHINE_TYPE_LABEL_PREFIX,
  SCHEDULABLE_LABEL,
  TUNNEL_ADDRESS_ANNOTATION,
} from '#api/names.ts';
import { formatStorageSize, type StorageSize } from '#api/storage/storage-size.ts';
import { setCondition, type Condition } from '#kube/conditions.ts';
import type { Node, Quantities } from '#kube/core-kinds.ts';
import { formatQuantity } from '#kube/quantity.ts';
import { timestamp } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import { isDefinable } from '#node/definition/machine.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type { HostFacts } from '#node/registration/host-facts.ts';

export interface NodeDescription {
  readonly name: string;
  readonly host: HostFacts;
  readonly capabilities: Capabilities;
  /** Address and port at which the API server reaches this agent. */
  readonly address: string;
  readonly port: number | undefined;
  /** Resolvable name of the address, if there is one. API servers try it before the address. */
  readonly hostname?: string | undefined;
  /** The address of this host for the tunnel between hosts, if guests of other hosts can be reached through it. */
  readonly tunnelAddress?: string | undefined;
  /** The largest volumes that fit on the node, if it is known. */
  readonly storage?: StorageSize | undefined;
  /** Taints of a new Node. A node cannot change them later. */
  readonly taints?: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
}

type NodeStatus = NonNullable<Node['status']>;

/** The agent behaves like a kubelet of this minor version. */
const KUBELET_VERSION = `v1.32.0+selfsame.${VERSION}`;
/** Written in the canonical form of the API, so that the stored value compares equal. */
const MAX_PODS = '5k';
/** Simulated guests need no resources, so any number of them fits on a machine. */
const SIMULATED_CAPACITY: Quantities = { cpu: '1M', memory: '1Pi', pods: '20k' };

export function nodeLabels({ name, host, capabilities }: NodeDescription): Record<string, string> {
  // Only types that a guest can have: otherwise pods would be scheduled here that cannot start.
  const types = capabilities.machines
    .filter(isDefinable)
    .flatMap(({ name: type, alias }) => (alias === undefined ? [type] : [type, alias]));
  return {
    'kubernetes.io/hostname': name,
    'kubernetes.io/os': 'linux',
    'kubernetes.io/arch': host.architecture,
    [SCHEDULABLE_LABEL]: 'true',
    [HYPERVISOR_LABEL]: capabilities.accelerator === 'simulated' ? 'fake' : 'qemu',
    ...Object.fromEntries(types.map((type) => [`${MACHINE_TYPE_LABEL_PREFIX}${type}`, 'true'])),
  };
}

export function nodeAnnotations({ capabilities, storage, tunnelAddress }: NodeDescription): Record<string, string> {
  const types = capabilities.machines
    .filter(isDefinable)
    .map(({ name, alias, deprecated }) => ({ name, ...(alias !== undefined && { alias }), deprecated }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return {
    [MACHINE_TYPES_ANNOTATION]: JSON.stringify(types),
    ...(storage === undefined ? {} : formatStorageSize(storage)),
    ...(tunnelAddress !== undefined && { [TUNNEL_ADDRESS_ANNOTATION]: tunnelAddress }),
  };
}

/** Returns the annotations to change, with null for an obsolete address of the tunnel, or undefined if there are none. */
export function annotationChanges(
  annotations: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Record<string, string | null> | undefined {
  const changes: [string, string | null][] = Object.entries(wanted).filter(
    ([key, value]) => annotations[key] !== value,
  );
  const [tunnel, wantedTunnel] = [annotations[TUNNEL_ADDRESS_ANNOTATION], wanted[TUNNEL_ADDRESS_ANNOTATION]];
  if (tunnel !== undefined && wantedTunnel === undefined) changes.push([TUNNEL_ADDRESS_ANNOTATION, null]);
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

/** Returns the labels to change, with null for obsolete machine types, or undefined if there are none. */
export function labelChanges(
  labels: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Record<string, string | null> | undefined {
  const changes: Record<string, string | null> = {};
  for (const [key, value] of Object.entries(wanted)) if (labels[key] !== value) changes[key] = value;
  for (const key of Object.keys(labels)) {
    if (key.startsWith(MACHINE_TYPE_LABEL_PREFIX) && wanted[key] === undefined) changes[key] = null;
  }
  return Object.keys(changes).length === 0 ? undefined : changes;
}

/** Returns the status of the Node. Only the heartbeat depends on the time; see `withoutHeartbeat`. */
export function buildNodeStatus(old: NodeStatus, description: NodeDescription, nowMs: number): NodeStatus {
  const { host, capabilities, address, hostname, port } = description;
  const capacity = capacityOf(host, capabilities);
  return {
    ...old,
    capacity,
    allocatable: capacity,
    conditions: setOwnConditions(old.conditions, nowMs),
    addresses: [
      { type: 'InternalIP', address },
      ...(hostname === undefined ? [] : [{ type: 'Hostname', address: hostname }]),
    ],
    ...(port === undefined ? {} : { daemonEndpoints: { kubeletEndpoint: { Port: port } } }),
    nodeInfo: {
      machineID: host.machineId,
      systemUUID: host.systemUuid,
      bootID: host.bootId,
      kernelVersion: host.kernelVersion,
      osImage: host.osImage,
      containerRuntimeVersion: `selfsame://${VERSION}`,
      kubeletVersion: KUBELET_VERSION,
      kubeProxyVersion: '',
      operatingSystem: 'linux',
      architecture: host.architecture,
    },
  };
}

/**
 * Returns the capacity of the whole machine. If several nodes share a machine (`selfsame up`), each of them reports all of
 * it: users expect that a VM that fits the machine fits a node, and guests use only the memory that they touch. The drawback
 * is that the scheduler counts the machine once per node and may overcommit its memory. On a cluster with one node per
 * machine the capacity is exact.
 */
function capacityOf({ cpus, memoryBytes }: HostFacts, { accelerator }: Capabilities): Quantities {
  if (accelerator === 'simulated') return SIMULATED_CAPACITY;
  const memory = {
    nanos: BigInt(Math.floor(memoryBytes / 1024)) * 1024n * 1_000_000_000n,
    format: 'BinarySI',
  } as const;
  return { cpu: String(cpus), memory: formatQuantity(memory), pods: MAX_PODS };
}

type Conditions = NonNullable<NodeStatus['conditions']>;

const NOT_WATCHED = 'the node agent does not watch for pressure';
/** The conditions of a kubelet; a missing one would count as unknown. */
const CONDITIONS = [
  { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory', message: NOT_WATCHED },
  { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: NOT_WATCHED },
  { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: NOT_WATCHED },
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'the node agent is ready' },
] as const;
const OWN_TYPES: ReadonlySet<string> = new Set(CONDITIONS.map(({ type }) => type));

function setOwnConditions(old: Conditions | undefined, nowMs: number): Conditions {
  const now = timestamp(nowMs);
  let conditions = (old ?? []) as readonly Condition[];
  for (const condition of CONDITIONS) conditions = setCondition(conditions, condition, now);
  return conditions.map((condition) =>
    OWN_TYPES.has(condition.type) ? { ...condition, lastHeartbeatTime: now } : condition,
  );
}

/** Returns the status without heartbeats, to compare whether it must be written before the next heartbeat. */
export function withoutHeartbeat(status: NodeStatus): NodeStatus {
  return {
    ...status,
    conditions: status.conditions?.map((condition) => ({ ...condition, lastHeartbeatTime: undefined })),
  };
}
