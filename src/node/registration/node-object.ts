/** The Node as this agent wants it to be. Labels and conditions of others stay. Pure. */
import { MACHINE_TYPES_ANNOTATION } from '#api/machine-types/names.ts';
import { MACHINE_TYPE_LABEL_PREFIX, SCHEDULABLE_LABEL } from '#api/names.ts';
import { setCondition, type Condition } from '#kube/conditions.ts';
import type { Node, Quantities } from '#kube/core-kinds.ts';
import { formatQuantity } from '#kube/quantity.ts';
import { timestamp } from '#lib/clock.ts';
import { VERSION } from '#lib/version.ts';
import { isDefinable } from '#node/definition/machine.ts';
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';
import type { HostFacts } from '#node/registration/host-facts.ts';

export const HYPERVISOR_LABEL = 'selfsame.io/hypervisor';

export interface NodeDescription {
  readonly name: string;
  readonly host: HostFacts;
  readonly capabilities: Capabilities;
  /** Where others reach this agent. */
  readonly address: string;
  readonly port: number | undefined;
  /** A name for the address, where others resolve it: API servers try a name before the address. */
  readonly hostname?: string | undefined;
  /** That it is made with; a node may not change them. */
  readonly taints?: readonly { readonly key: string; readonly value: string; readonly effect: string }[];
}

export type NodeStatus = NonNullable<Node['status']>;

/** The agent stands in for a kubelet of this minor version. */
const KUBELET_VERSION = `v1.32.0+selfsame.${VERSION}`;
/** Quantities as the API prints them, so that what is stored compares equal. */
const PODS = '5k';
/** Simulated guests need nothing: a fleet of them fits on any machine. */
const SIMULATED: Quantities = { cpu: '1M', memory: '1Pi', pods: '20k' };

export function nodeLabels({ name, host, capabilities }: NodeDescription): Record<string, string> {
  // Only what a guest can have: a pod that needs another type would come here in vain.
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

export function nodeAnnotations({ capabilities }: NodeDescription): Record<string, string> {
  const types = capabilities.machines
    .filter(isDefinable)
    .map(({ name, alias, deprecated }) => ({ name, ...(alias !== undefined && { alias }), deprecated }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return { [MACHINE_TYPES_ANNOTATION]: JSON.stringify(types) };
}

/** Annotations that are not as they should be; undefined: none. */
export function annotationChanges(
  annotations: Readonly<Record<string, string>>,
  wanted: Readonly<Record<string, string>>,
): Record<string, string> | undefined {
  const changes = Object.entries(wanted).filter(([key, value]) => annotations[key] !== value);
  return changes.length === 0 ? undefined : Object.fromEntries(changes);
}

/** What is to change in the labels: ours as they should be, machine types that are no more as null. Undefined: nothing. */
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

/** The heartbeat is the one field that changes by itself; see `withoutHeartbeat`. */
export function nodeStatus(old: NodeStatus, description: NodeDescription, nowMs: number): NodeStatus {
  const { host, capabilities, address, hostname, port } = description;
  const capacity = capacityOf(host, capabilities);
  return {
    ...old,
    capacity,
    allocatable: capacity,
    conditions: ownConditions(old.conditions, nowMs),
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
 * All of the machine. Where several nodes share one (`selfsame up`), each says so: people who try things out expect that a
 * VM which fits the machine fits a node, and memory of guests is taken only as they touch it. The price is that the
 * scheduler takes the machine for as many as there are nodes: it may fill the memory that often. One node on each
 * machine, as on a cluster, counts right.
 */
function capacityOf({ cpus, memoryBytes }: HostFacts, { accelerator }: Capabilities): Quantities {
  if (accelerator === 'simulated') return SIMULATED;
  const memory = {
    nanos: BigInt(Math.floor(memoryBytes / 1024)) * 1024n * 1_000_000_000n,
    format: 'BinarySI',
  } as const;
  return { cpu: String(cpus), memory: formatQuantity(memory), pods: PODS };
}

type Conditions = NonNullable<NodeStatus['conditions']>;

const NOT_WATCHED = 'the node agent does not watch for pressure';
/** What a kubelet tells; what is missing would be taken for unknown. */
const CONDITIONS = [
  { type: 'MemoryPressure', status: 'False', reason: 'KubeletHasSufficientMemory', message: NOT_WATCHED },
  { type: 'DiskPressure', status: 'False', reason: 'KubeletHasNoDiskPressure', message: NOT_WATCHED },
  { type: 'PIDPressure', status: 'False', reason: 'KubeletHasSufficientPID', message: NOT_WATCHED },
  { type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'the node agent is ready' },
] as const;
const TYPES: ReadonlySet<string> = new Set(CONDITIONS.map(({ type }) => type));

function ownConditions(old: Conditions | undefined, nowMs: number): Conditions {
  const now = timestamp(nowMs);
  let conditions = (old ?? []) as readonly Condition[];
  for (const condition of CONDITIONS) conditions = setCondition(conditions, condition, now);
  return conditions.map((condition) =>
    TYPES.has(condition.type) ? { ...condition, lastHeartbeatTime: now } : condition,
  );
}

/** Without the heartbeat: whether the status has to be written before its time. */
export function withoutHeartbeat(status: NodeStatus): NodeStatus {
  return {
    ...status,
    conditions: status.conditions?.map((condition) => ({ ...condition, lastHeartbeatTime: undefined })),
  };
}
