/**
 * Computes the agent's part of an instance's status: AGENT_FIELDS and AgentCondition. All other fields and conditions are
 * kept as they are. Pure.
 */
import { guestUserOf } from '#node/hardware/guest-user.ts';
import type { MigrationProgress } from '#api/migration/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { AGENT_FIELDS, AgentCondition, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { timestamp } from '#lib/clock.ts';
import { describeIoError } from '#node/domains/describe-io-error.ts';
import type { HotplugState } from '#node/domains/hotplug/hotplug-devices.ts';
import type { DomainDeviceReading } from '#node/guests/device-readings.ts';
import type { NodeFacts } from '#node/guests/node-facts.ts';
import { mergeInterfaces } from '#node/guest-agent/agent-answers.ts';
import type { GuestAgentReport } from '#node/guest-agent/agent-reader.ts';
import type { DomainInfo, DomainInspection, DomainState } from '#node/hypervisor/hypervisor.ts';
import type { InterfaceDevice } from '#node/hardware/domain-definition.ts';
import type { PodNetwork } from '#node/network/pod-networks.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

/** The reason of the condition Paused if an error of a disk has paused the guest. */
export const PAUSED_IO_ERROR = 'PausedIOError';

export interface GuestFacts {
  readonly domain: DomainInfo;
  /** Undefined if the hypervisor no longer knows the domain. */
  readonly inspection: DomainInspection | undefined;
  /** The networks of the guest; undefined if it has no network namespace. */
  readonly network?: PodNetwork | undefined;
  /** Undefined until this process has read the devices; the reported ones are kept until then. */
  readonly reading: DomainDeviceReading | undefined;
  /** Undefined keeps the reported states. */
  readonly hotplug: readonly HotplugState[] | undefined;
  /** Progress of the migration; undefined keeps the reported one. */
  readonly progress?: MigrationProgress | undefined;
  /** The last report of the guest agent. */
  readonly agent?: GuestAgentReport | undefined;
  readonly node: NodeFacts;
  readonly nowMs: number;
}

/** Returns the whole status of the instance, with the agent's part up to date. */
export function reportedStatus(vmi: VirtualMachineInstance, facts: GuestFacts): VmiStatus {
  const old = vmi.status ?? {};
  const conditions = agentConditions(vmi, facts);
  return { ...old, ...agentFields(vmi, facts), conditions: [...conditions] };
}

/** Reports whether the agent's part of the status is up to date. */
export function isReported(vmi: VirtualMachineInstance, facts: Omit<GuestFacts, 'nowMs'>): boolean {
  return deepEqual(reportedStatus(vmi, { ...facts, nowMs: facts.domain.startedAtMs }), vmi.status);
}

/** Messages of the hypervisor may be long. */
const MAX_MESSAGE_LENGTH = 2000;

function agentFields(vmi: VirtualMachineInstance, facts: GuestFacts) {
  const { domain, node } = facts;
  const { cpu = {}, memory, resources } = vmi.spec.domain;
  const requested = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  const simulated = node.capabilities.accelerator === 'simulated';
  return {
    machine: { type: domain.machine },
    interfaces: reportedInterfaces(facts) ?? vmi.status?.interfaces,
    currentCPUTopology: { sockets: cpu.sockets ?? 1, cores: cpu.cores ?? 1, threads: cpu.threads ?? 1 },
    memory:
      requested === undefined
        ? undefined
        : { guestAtBoot: requested, guestCurrent: requested, guestRequested: requested },
    ...deviceFields(vmi.status, facts),
    hotplug: hotplugField(vmi.status, facts),
    guestStarted: { at: timestamp(domain.startedAtMs), ...(simulated ? { simulated } : {}) },
    runtimeUser: node.sandboxed ? guestUserOf(domain.id).uid : undefined,
    migrationProgress: facts.progress ?? vmi.status?.migrationProgress,
    ...guestAgentFields(vmi.status, facts),
  } satisfies Record<(typeof AGENT_FIELDS)[number], unknown>;
}

/**
 * Returns hash and revision of the devices. Before the first reading, the reported hash is kept if it is from this start of
 * the guest; the revision is always kept, so that it never decreases.
 */
function deviceFields(old: VmiStatus | undefined, { domain, reading }: GuestFacts) {
  if (reading !== undefined) return { deviceHash: reading.hash, deviceRevision: reading.revision };
  const isOfThisStart = old?.guestStarted?.at === timestamp(domain.startedAtMs);
  return { deviceHash: isOfThisStart ? old?.deviceHash : undefined, deviceRevision: old?.deviceRevision };
}

/** Returns undefined during a migration, so that the reported interfaces are kept. */
function reportedInterfaces({ inspection, network, domain, agent }: GuestFacts) {
  if (isElsewhere(domain.current)) return undefined;
  const interfaces = inspection?.definition.devices.flatMap((device) => (device.type === 'interface' ? device : []));
  const own = interfaces?.map(({ name, macAddress }) => ({ name, mac: macAddress, infoSource: 'domain' }));
  const merged = own && mergeInterfaces(own, agent?.interfaces);
  return merged?.map((entry, i) => ({ ...entry, ...podAddressFields(interfaces?.[i], network) }));
}

/** Returns the addresses under which others reach an interface: those of its pod, which the guest may not know. */
function podAddressFields(device: InterfaceDevice | undefined, network: PodNetwork | undefined) {
  if (device?.backend.type !== 'pod') return {};
  const { podInterface } = device.backend.attachment;
  const { addresses = [] } = network?.interfaces.find((entry) => entry.podInterface === podInterface) ?? {};
  const [ipAddress] = addresses;
  return ipAddress === undefined ? {} : { ipAddress, ipAddresses: [...addresses], podInterfaceName: podInterface };
}

/** Keeps the reported guest OS while the guest agent is connected and has not reported again. */
function guestAgentFields(old: VmiStatus | undefined, { domain, agent }: GuestFacts) {
  if (isElsewhere(domain.current)) return { guestOSInfo: old?.guestOSInfo, fsFreezeStatus: old?.fsFreezeStatus };
  const isConnected = domain.agent === 'connected';
  return {
    guestOSInfo: isConnected ? (agent?.os ?? old?.guestOSInfo) : undefined,
    fsFreezeStatus: domain.frozenUntilMs === undefined ? undefined : 'frozen',
  };
}

function hotplugField(old: VmiStatus | undefined, { hotplug, nowMs }: GuestFacts): VmiStatus['hotplug'] {
  if (hotplug === undefined) return old?.hotplug;
  if (hotplug.length === 0) return undefined;
  return hotplug.map(({ device, phase, message }) => {
    const reported = old?.hotplug?.find((entry) => entry.device === device);
    const since = reported?.phase === phase ? reported.since : timestamp(nowMs);
    return {
      device,
      phase,
      ...(message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE_LENGTH) }),
      ...(since === undefined ? {} : { since }),
    };
  });
}

type NextAgentCondition = NextCondition & { readonly type: AgentCondition };

function agentConditions(vmi: VirtualMachineInstance, facts: GuestFacts): readonly Condition[] {
  const old: readonly Condition[] | undefined = vmi.status?.conditions;
  const { domain, node, hotplug } = facts;
  const { current } = domain;
  const now = timestamp(facts.nowMs);
  const present: NextAgentCondition[] = [];
  const obsolete = new Set<AgentCondition>();
  const isAway = isElsewhere(current);
  if (current.state === 'paused' && !isAway) present.push(pausedCondition(current, vmi, node.name));
  else if (!isAway) obsolete.add('Paused');
  const pending = hotplug === undefined ? undefined : changePending(hotplug);
  if (pending !== undefined) present.push(pending);
  else if (hotplug !== undefined || (current.state === 'ended' && !isAway)) obsolete.add('DeviceChangePending');
  if (domain.agent === 'connected') present.push({ type: 'AgentConnected', status: 'True' });
  else if (!isAway) obsolete.add('AgentConnected');
  const emulation = softwareEmulation(node.capabilities);
  if (emulation !== undefined) present.push(emulation);
  const userMode = userModeNetwork(facts);
  if (userMode !== undefined) present.push(userMode);
  else if (facts.inspection !== undefined && !isAway) obsolete.add('UserModeNetwork');
  const others = (old ?? []).filter(({ type }) => !obsolete.has(type as AgentCondition));
  return present.reduce<readonly Condition[]>((conditions, next) => setCondition(conditions, next, now), others);
}

/** Reports whether the guest is migrating or has left: the reported state then describes it on the other node. */
function isElsewhere(current: DomainState): boolean {
  if (current.state === 'ended') return current.how === 'migrated';
  return current.state === 'incoming' || (current.state === 'paused' && current.why === 'migration');
}

/** Returns the Paused condition, with KubeVirt's reasons. The messages begin as KubeVirt's. */
function pausedCondition(
  { why, failedDisks }: Extract<DomainState, { state: 'paused' }>,
  vmi: VirtualMachineInstance,
  node: string,
): NextAgentCondition {
  const [reason, message] =
    why === 'ioError'
      ? [PAUSED_IO_ERROR, `VMI was paused, low-level IO error detected: ${describeIoError(failedDisks, vmi, node)}`]
      : ['PausedByUser', 'VMI was paused by user'];
  return { type: 'Paused', status: 'True', reason, message: message.slice(0, MAX_MESSAGE_LENGTH) };
}

/** Returns a condition if the guest or a volume delays a hotplug change. A change that proceeds needs no condition. */
function changePending(hotplug: readonly HotplugState[]): NextAgentCondition | undefined {
  const waiting = hotplug.filter(({ reason }) => reason !== undefined);
  const worst = waiting.find(({ phase }) => phase === 'Failed') ?? waiting[0];
  if (worst?.reason === undefined) return undefined;
  const message = waiting.map(({ device, message: why }) => `${device}: ${why ?? ''}`).join('; ');
  return {
    type: 'DeviceChangePending',
    status: 'True',
    reason: worst.reason,
    message: message.slice(0, MAX_MESSAGE_LENGTH),
  };
}

function softwareEmulation({ accelerator, version }: Capabilities): NextAgentCondition | undefined {
  if (accelerator !== 'tcg') return undefined;
  const message = `This node has no KVM: ${version} emulates the processor in software, which is slow.`;
  return { type: 'SoftwareEmulation', status: 'True', reason: 'KvmUnavailable', message };
}

/** Returns a condition if interfaces of a real guest have user-mode networking, with the reason. */
function userModeNetwork({ inspection, network, domain, node }: GuestFacts): NextAgentCondition | undefined {
  if (node.capabilities.accelerator === 'simulated' || isElsewhere(domain.current)) return undefined;
  const names = (inspection?.definition.devices ?? []).flatMap((device) =>
    device.type === 'interface' && device.backend.type === 'user' ? [device.name] : [],
  );
  if (names.length === 0) return undefined;
  const [reason, why] = whyUserMode(node, network);
  const message =
    `User-mode networking for ${names.join(', ')}: no address of its own, reached by port-forward only, ` +
    `and connections end at a live migration. ${why}`;
  return { type: 'UserModeNetwork', status: 'True', reason, message: message.slice(0, MAX_MESSAGE_LENGTH) };
}

function whyUserMode({ sandboxed }: NodeFacts, network: PodNetwork | undefined): readonly [string, string] {
  if (network !== undefined) return ['SecondPodNetwork', 'A guest has one interface on the pod network.'];
  if (!sandboxed) return ['RootRequired', 'The node agent does not run as root, which the network of guests needs.'];
  return [
    'StartedWithoutNetwork',
    'There was no network of guests when the guest was started; if there is one now, the next start uses it.',
  ];
}
