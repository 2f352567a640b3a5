/**
 * The verbs `list` and `getAllVmStats`, answered from what the agent has already read. Only monitors are pinged during
 * the call (monitor-probe.ts).
 */
import { isIPv4 } from 'node:net';
import { HOST_CODES, type HostAnswer, type HostVmStats } from '#api/host-api.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';
import { refuseCall } from '#node/host-api/answers.ts';
import type { ReadParts } from '#node/host-api/host-parts.ts';
import { isEnabled, quoteSentValue, type SentMap } from '#node/host-api/sent/sent-values.ts';
import { hostVmStatus, reportedHash, renderHostVm } from '#node/host-api/verbs/render-host-vm.ts';
import type { DomainInfo } from '#node/hypervisor/hypervisor.ts';

export function listHostVms({ vmList = [], fullStatus, onlyUUID }: SentMap, parts: ReadParts): HostAnswer {
  if (!isStringList(vmList))
    return refuseCall(HOST_CODES.unexpected, `vmList: ${quoteSentValue(vmList)}; expected a list of ids`);
  const domains = findDomains(vmList, parts);
  const { done: status } = HOST_CODES;
  if (isEnabled(onlyUUID)) return { status, vmList: domains.map(({ id }) => id) };
  if (!isEnabled(fullStatus)) {
    return { status, vmList: domains.map((domain) => ({ vmId: domain.id, status: hostVmStatus(domain) })) };
  }
  return { status, vmList: domains.flatMap((domain) => renderHostVm(domain, parts) ?? []) };
}

export async function getAllVmStats({ hypervisor, readings, vms, agents, monitors }: ReadParts): Promise<HostAnswer> {
  const domains = hypervisor.list();
  const alive = domains.filter(({ current }) => current.state !== 'ended').map(({ id }) => id);
  const answering = await monitors.findAnswering(alive);
  const statsList = domains.map((domain): HostVmStats => {
    const hash = reportedHash(readings.get(domain.id), vms?.get(domain.id));
    return {
      vmId: domain.id,
      status: hostVmStatus(domain),
      ...(domain.pid === undefined ? {} : { pid: domain.pid }),
      ...(hash === undefined ? {} : { hash }),
      ...(domain.current.state !== 'ended' && {
        monitorResponse: answering.has(domain.id) ? '0' : '-1',
        guestIPs: guestIps(agents.get(domain.id)?.interfaces ?? []),
      }),
    };
  });
  return { status: HOST_CODES.done, statsList };
}

/** Returns the IPv4 addresses that the guest agent reports, separated by spaces, without loopback addresses. */
function guestIps(interfaces: readonly AgentInterface[]): string {
  const addresses = interfaces.flatMap((item) => item.addresses).filter((text) => isIPv4(text));
  return addresses.filter((text) => !text.startsWith('127.')).join(' ');
}

/** Returns the domains with these ids, skipping unknown ids; all domains if `ids` is empty. */
function findDomains(ids: readonly string[], { hypervisor }: ReadParts): readonly DomainInfo[] {
  if (ids.length === 0) return hypervisor.list();
  return [...new Set(ids.map((id) => id.toLowerCase()))].flatMap((id) => hypervisor.get(id) ?? []);
}

function isStringList(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
