/**
 * What the agent tells of a guest in the status of its instance: AGENT_FIELDS and AGENT_CONDITIONS, and nothing else. What
 * others wrote there is taken over as it is. Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { AGENT_FIELDS, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import { timestamp } from '#lib/clock.ts';
import type { NodeFacts } from '#node/domains/domain-world.ts';
import type { Capabilities, Domain, DomainState } from '#node/hypervisor/hypervisor.ts';

export interface GuestFacts {
  readonly domain: Domain;
  readonly devices: readonly LearnedDevice[];
  /** Of interfaces by name, as the domain was defined: the spec may leave them out. */
  readonly macs?: ReadonlyMap<string, string> | undefined;
  readonly node: NodeFacts;
  readonly nowMs: number;
}

/** The whole status of the instance with our part as it should be. */
export function reportedStatus(vmi: VirtualMachineInstance, facts: GuestFacts): VmiStatus {
  const old = vmi.status ?? {};
  const conditions = agentConditions(old.conditions, facts);
  return { ...old, ...agentFields(vmi, facts), conditions: [...conditions] };
}

/** The devices are told once for each start: they do not change while it runs. */
export function needsLearning({ status }: VirtualMachineInstance, { startedAtMs }: Domain): boolean {
  return status?.devices === undefined || status.guestStarted?.at !== timestamp(startedAtMs);
}

/** Whether the status says already what we know, the devices aside. */
export function hasReport(vmi: VirtualMachineInstance, domain: Domain, node: NodeFacts): boolean {
  const devices = vmi.status?.devices ?? [];
  return deepEqual(reportedStatus(vmi, { domain, devices, node, nowMs: domain.startedAtMs }), vmi.status);
}

function agentFields(vmi: VirtualMachineInstance, facts: GuestFacts) {
  const { domain, devices, node } = facts;
  const { cpu = {}, memory, resources } = vmi.spec.domain;
  const asked = memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'];
  const simulated = node.capabilities.accelerator === 'simulated';
  return {
    machine: { type: domain.machine },
    interfaces: interfacesOf(vmi, facts),
    currentCPUTopology: { sockets: cpu.sockets ?? 1, cores: cpu.cores ?? 1, threads: cpu.threads ?? 1 },
    memory: asked === undefined ? undefined : { guestAtBoot: asked, guestCurrent: asked, guestRequested: asked },
    devices: [...devices],
    guestStarted: { at: timestamp(domain.startedAtMs), ...(simulated ? { simulated } : {}) },
    runtimeUser: node.guestUid,
  } satisfies Record<(typeof AGENT_FIELDS)[number], unknown>;
}

/** Addresses inside of user-mode networking are the guest's own and reach nobody: they are not told. */
function interfacesOf({ spec, status }: VirtualMachineInstance, { devices, macs }: GuestFacts) {
  const asked = new Map(spec.domain.devices?.interfaces?.map(({ name, macAddress }) => [name, macAddress]));
  const told = new Map(status?.interfaces?.map(({ name, mac }) => [name, mac]));
  return devices.flatMap(({ type, name }) => {
    if (type !== 'interface' || name === undefined) return [];
    const mac = macs?.get(name) ?? asked.get(name) ?? told.get(name);
    return [{ name, ...(mac === undefined ? {} : { mac }), infoSource: 'domain' }];
  });
}

function agentConditions(old: readonly Condition[] | undefined, { domain, node, nowMs }: GuestFacts) {
  const now = timestamp(nowMs);
  const others = (old ?? []).filter(({ type }) => type !== 'Paused' || domain.current.state === 'paused');
  const { current } = domain;
  const conditions = current.state === 'paused' ? setCondition(others, pausedCondition(current), now) : others;
  const emulation = softwareEmulation(node.capabilities);
  return emulation === undefined ? conditions : setCondition(conditions, emulation, now);
}

/** KubeVirt's words. */
function pausedCondition({ why }: Extract<DomainState, { state: 'paused' }>): NextCondition {
  const [reason, message] =
    why === 'ioError'
      ? ['PausedIOError', 'VMI was paused, low-level IO error detected']
      : ['PausedByUser', 'VMI was paused by user'];
  return { type: 'Paused', status: 'True', reason, message };
}

function softwareEmulation({ accelerator, version }: Capabilities): NextCondition | undefined {
  if (accelerator !== 'tcg') return undefined;
  const message = `This node has no KVM: ${version} emulates the processor in software, which is slow.`;
  return { type: 'SoftwareEmulation', status: 'True', reason: 'KvmUnavailable', message };
}
