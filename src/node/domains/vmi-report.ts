/**
 * What the agent tells of a guest in the status of its instance: AGENT_FIELDS and AGENT_CONDITIONS, and nothing else. What
 * others wrote there is taken over as it is. Pure.
 */
import type { MigrationProgress } from '#api/migration-state.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { AGENT_FIELDS, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { timestamp } from '#lib/clock.ts';
import type { HotplugState } from '#node/domains/decide-hotplug.ts';
import type { Reading } from '#node/domains/device-book.ts';
import type { NodeFacts } from '#node/domains/domain-world.ts';
import { mergeInterfaces } from '#node/guest-agent/agent-answers.ts';
import type { AgentNews } from '#node/guest-agent/agent-reader.ts';
import type { Capabilities, Domain, DomainInspection, DomainState } from '#node/hypervisor/hypervisor.ts';

export interface GuestFacts {
  readonly domain: Domain;
  /** Undefined once the hypervisor has no more to tell. */
  readonly inspection: DomainInspection | undefined;
  /** Undefined until this process has read the devices: what was told of them before stands. */
  readonly reading: Reading | undefined;
  /** Undefined: as it was told. */
  readonly hotplug: readonly HotplugState[] | undefined;
  /** Of its migration; undefined: as it was told. */
  readonly progress?: MigrationProgress | undefined;
  /** What its agent says; undefined while it does not. */
  readonly agent?: AgentNews | undefined;
  readonly node: NodeFacts;
  readonly nowMs: number;
}

/** The whole status of the instance with our part as it should be. */
export function reportedStatus(vmi: VirtualMachineInstance, facts: GuestFacts): VmiStatus {
  const old = vmi.status ?? {};
  const conditions = agentConditions(old.conditions, facts);
  return { ...old, ...agentFields(vmi, facts), conditions: [...conditions] };
}

/** Whether the status says already what we know. */
export function hasReport(vmi: VirtualMachineInstance, facts: Omit<GuestFacts, 'nowMs'>): boolean {
  return deepEqual(reportedStatus(vmi, { ...facts, nowMs: facts.domain.startedAtMs }), vmi.status);
}

/** What a hypervisor has to say may be long. */
const MAX_MESSAGE = 2000;

function agentFields(vmi: VirtualMachineInstance, facts: GuestFacts) {
  const { domain, node } = facts;
  const { cpu = {}, memory, resources } = vmi.spec.domain;
  const asked = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  const simulated = node.capabilities.accelerator === 'simulated';
  return {
    machine: { type: domain.machine },
    interfaces: interfacesOf(facts) ?? vmi.status?.interfaces,
    currentCPUTopology: { sockets: cpu.sockets ?? 1, cores: cpu.cores ?? 1, threads: cpu.threads ?? 1 },
    memory: asked === undefined ? undefined : { guestAtBoot: asked, guestCurrent: asked, guestRequested: asked },
    ...devicesOf(vmi.status, facts),
    hotplug: hotplugOf(vmi.status, facts),
    guestStarted: { at: timestamp(domain.startedAtMs), ...(simulated ? { simulated } : {}) },
    runtimeUser: node.guestUid,
    migrationProgress: facts.progress ?? vmi.status?.migrationProgress,
    ...guestNews(vmi.status, facts),
  } satisfies Record<(typeof AGENT_FIELDS)[number], unknown>;
}

/** Until they are read, those of the same start stand; of an earlier one only the revision, that it goes on rising. */
function devicesOf(old: VmiStatus | undefined, { domain, reading }: GuestFacts) {
  if (reading !== undefined) return { deviceHash: reading.hash, deviceRevision: reading.revision };
  const isOfThisStart = old?.guestStarted?.at === timestamp(domain.startedAtMs);
  return { deviceHash: isOfThisStart ? old?.deviceHash : undefined, deviceRevision: old?.deviceRevision };
}

/** What is not asked while it moves stands as it was told. */
function interfacesOf({ inspection, domain, agent }: GuestFacts) {
  if (isElsewhere(domain.current)) return undefined;
  const own = inspection?.definition.devices.flatMap((device) =>
    device.type === 'interface' ? [{ name: device.name, mac: device.macAddress, infoSource: 'domain' }] : [],
  );
  return own && mergeInterfaces(own, agent?.interfaces);
}

/** What the last agent said of its system stands until another one says otherwise, or the guest is no more. */
function guestNews(old: VmiStatus | undefined, { domain, agent }: GuestFacts) {
  if (isElsewhere(domain.current)) return { guestOSInfo: old?.guestOSInfo, fsFreezeStatus: old?.fsFreezeStatus };
  const isConnected = domain.agent === 'connected';
  return {
    guestOSInfo: isConnected ? (agent?.os ?? old?.guestOSInfo) : undefined,
    fsFreezeStatus: domain.frozenUntilMs === undefined ? undefined : 'frozen',
  };
}

function hotplugOf(old: VmiStatus | undefined, { hotplug, nowMs }: GuestFacts): VmiStatus['hotplug'] {
  if (hotplug === undefined) return old?.hotplug;
  if (hotplug.length === 0) return undefined;
  return hotplug.map(({ device, phase, message }) => {
    const told = old?.hotplug?.find((entry) => entry.device === device);
    const since = told?.phase === phase ? told.since : timestamp(nowMs);
    return {
      device,
      phase,
      ...(message === undefined ? {} : { message: message.slice(0, MAX_MESSAGE) }),
      ...(since === undefined ? {} : { since }),
    };
  });
}

function agentConditions(old: readonly Condition[] | undefined, facts: GuestFacts): readonly Condition[] {
  const { domain, node, hotplug } = facts;
  const { current } = domain;
  const now = timestamp(facts.nowMs);
  const set: NextCondition[] = [];
  const over = new Set<string>();
  const isAway = isElsewhere(current);
  if (current.state === 'paused' && !isAway) set.push(pausedCondition(current));
  else if (!isAway) over.add('Paused');
  const pending = hotplug === undefined ? undefined : changePending(hotplug);
  if (pending !== undefined) set.push(pending);
  else if (hotplug !== undefined || (current.state === 'ended' && !isAway)) over.add('DeviceChangePending');
  if (domain.agent === 'connected') set.push({ type: 'AgentConnected', status: 'True' });
  else if (!isAway) over.add('AgentConnected');
  const emulation = softwareEmulation(node.capabilities);
  if (emulation !== undefined) set.push(emulation);
  const others = (old ?? []).filter(({ type }) => !over.has(type));
  return set.reduce<readonly Condition[]>((conditions, next) => setCondition(conditions, next, now), others);
}

/** On its way, or gone: what was told of it is true of it where it goes on. */
function isElsewhere(current: DomainState): boolean {
  if (current.state === 'ended') return current.how === 'migrated';
  return current.state === 'incoming' || (current.state === 'paused' && current.why === 'migration');
}

/** KubeVirt's words. */
function pausedCondition({ why }: Extract<DomainState, { state: 'paused' }>): NextCondition {
  const [reason, message] =
    why === 'ioError'
      ? ['PausedIOError', 'VMI was paused, low-level IO error detected']
      : ['PausedByUser', 'VMI was paused by user'];
  return { type: 'Paused', status: 'True', reason, message };
}

/** What the guest, or a volume, keeps waiting; what just goes on is over in a moment. */
function changePending(hotplug: readonly HotplugState[]): NextCondition | undefined {
  const waiting = hotplug.filter(({ reason }) => reason !== undefined);
  const worst = waiting.find(({ phase }) => phase === 'Failed') ?? waiting[0];
  if (worst?.reason === undefined) return undefined;
  const message = waiting.map(({ device, message: why }) => `${device}: ${why ?? ''}`).join('; ');
  return { type: 'DeviceChangePending', status: 'True', reason: worst.reason, message: message.slice(0, MAX_MESSAGE) };
}

function softwareEmulation({ accelerator, version }: Capabilities): NextCondition | undefined {
  if (accelerator !== 'tcg') return undefined;
  const message = `This node has no KVM: ${version} emulates the processor in software, which is slow.`;
  return { type: 'SoftwareEmulation', status: 'True', reason: 'KvmUnavailable', message };
}
