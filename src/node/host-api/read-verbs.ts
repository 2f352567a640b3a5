/** `list` and `getAllVmStats`, answered from what the agent has read already: nobody's question makes a hypervisor work. */
import { HOST_CODES, type HostAnswer, type HostVmStats } from '#api/host-api.ts';
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

export function getAllVmStats({ hypervisor, book, vms }: ReadParts): HostAnswer {
  const statsList = hypervisor.list().map((domain): HostVmStats => {
    const hash = toldHash(book.get(domain.id), vms?.get(domain.id));
    return {
      vmId: domain.id,
      status: statusOf(domain),
      ...(domain.pid === undefined ? {} : { pid: domain.pid }),
      ...(hash === undefined ? {} : { hash }),
    };
  });
  return { status: HOST_CODES.done, statsList };
}

/** None means all; those that are not there are left out. */
function asked(ids: readonly string[], { hypervisor }: ReadParts): readonly Domain[] {
  if (ids.length === 0) return hypervisor.list();
  return [...new Set(ids.map((id) => id.toLowerCase()))].flatMap((id) => hypervisor.get(id) ?? []);
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
