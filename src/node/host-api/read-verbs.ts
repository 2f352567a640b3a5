/**
 * `list` and `getAllVmStats`, answered from what the agent has read already. Only whether a monitor answers is asked then,
 * because nothing else tells (monitor-watch.ts).
 */
import { isIPv4 } from 'node:net';
import { HOST_CODES, type HostAnswer, type HostVmStats } from '#api/host-api.ts';
import type { AgentInterface } from '#node/guest-agent/agent-answers.ts';
import { refused } from '#node/host-api/answers.ts';
import type { ReadParts } from '#node/host-api/host-parts.ts';
import { isOn, shown, type SentMap } from '#node/host-api/sent-values.ts';
import { statusOf, toldHash, toldVm } from '#node/host-api/told-vm.ts';
import type { Domain } from '#node/hypervisor/hypervisor.ts';

export function list({ vmList = [], fullStatus, onlyUUID }: SentMap, parts: ReadParts): HostAnswer {
  if (!isTexts(vmList)) return refused(HOST_CODES.unexpected, `vmList: ${shown(vmList)} is no list of ids`);
  const domains = asked(vmList, parts);
  const { done: status } = HOST_CODES;
  if (isOn(onlyUUID)) return { status, vmList: domains.map(({ id }) => id) };
  if (!isOn(fullStatus)) {
    return { status, vmList: domains.map((domain) => ({ vmId: domain.id, status: statusOf(domain) })) };
  }
  return { status, vmList: domains.flatMap((domain) => toldVm(domain, parts) ?? []) };
}

export async function getAllVmStats({ hypervisor, book, vms, agents, monitors }: ReadParts): Promise<HostAnswer> {
  const domains = hypervisor.list();
  const alive = domains.filter(({ current }) => current.state !== 'ended').map(({ id }) => id);
  const answering = await monitors.answering(alive);
  const statsList = domains.map((domain): HostVmStats => {
    const hash = toldHash(book.get(domain.id), vms?.get(domain.id));
    return {
      vmId: domain.id,
      status: statusOf(domain),
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

/** Returns the IPv4 addresses that the guest agent reports, one blank between two, without those of loopbacks. */
function guestIps(interfaces: readonly AgentInterface[]): string {
  const addresses = interfaces.flatMap((item) => item.addresses).filter((text) => isIPv4(text));
  return addresses.filter((text) => !text.startsWith('127.')).join(' ');
}

/** None means all; those that are not there are left out. */
function asked(ids: readonly string[], { hypervisor }: ReadParts): readonly Domain[] {
  if (ids.length === 0) return hypervisor.list();
  return [...new Set(ids.map((id) => id.toLowerCase()))].flatMap((id) => hypervisor.get(id) ?? []);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
