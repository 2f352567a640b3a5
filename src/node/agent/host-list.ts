/**
 * The reading half of the host API: `list` and `getAllVmStats`, answered from what the agent has read already. Nobody's
 * question makes a hypervisor work.
 */
import {
  HOST_CODES,
  hostDeviceOf,
  type HostAnswer,
  type HostVerb,
  type HostVm,
  type HostVmStats,
} from '#api/host-api.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import type { DeviceBook } from '#node/domains/device-book.ts';
import type { HostApi } from '#node/endpoint/endpoint-agent.ts';
import type { Domain, Hypervisor } from '#node/hypervisor/hypervisor.ts';

export interface HostListParts {
  readonly hypervisor: Pick<Hypervisor, 'get' | 'list' | 'inspect'>;
  readonly book: Pick<DeviceBook, 'get'>;
}

export function hostList(parts: HostListParts): HostApi {
  return {
    async call(verb: HostVerb, parameters) {
      if (verb === 'list') return list(parts, parameters);
      if (verb === 'getAllVmStats') return allStats(parts);
      const { code, message } = HOST_CODES.unexpected;
      return { status: { code, message: `${message}: this node does not serve ${verb}` } };
    },
  };
}

function list(parts: HostListParts, parameters: Readonly<Record<string, unknown>>): HostAnswer {
  const { vmList, fullStatus, onlyUUID } = parameters;
  if (vmList !== undefined && !isTexts(vmList)) {
    const { code, message } = HOST_CODES.unexpected;
    return { status: { code, message: `${message}: vmList is no list of ids` } };
  }
  const domains = asked(parts, vmList ?? []);
  if (onlyUUID === true) return { status: HOST_CODES.done, vmList: domains.map(({ id }) => id) };
  if (fullStatus !== true) {
    return {
      status: HOST_CODES.done,
      vmList: domains.map((domain) => ({ vmId: domain.id, status: statusOf(domain) })),
    };
  }
  return { status: HOST_CODES.done, vmList: domains.flatMap((domain) => hostVm(domain, parts) ?? []) };
}

function asked({ hypervisor }: HostListParts, ids: readonly string[]): readonly Domain[] {
  if (ids.length === 0) return hypervisor.list();
  return [...new Set(ids)].flatMap((id) => hypervisor.get(id) ?? []);
}

function allStats({ hypervisor, book }: HostListParts): HostAnswer {
  const statsList = hypervisor.list().map((domain): HostVmStats => {
    const hash = book.get(domain.id)?.hash;
    return {
      vmId: domain.id,
      status: statusOf(domain),
      ...(domain.pid === undefined ? {} : { pid: domain.pid }),
      ...(hash === undefined ? {} : { hash }),
    };
  });
  return { status: HOST_CODES.done, statsList };
}

function hostVm(domain: Domain, { hypervisor, book }: HostListParts): HostVm | undefined {
  const definition = hypervisor.inspect(domain.id)?.definition;
  // Removed this very moment.
  if (definition === undefined) return undefined;
  const reading = book.get(domain.id);
  const { sockets, cores, threads } = definition.cpu;
  return {
    vmId: domain.id,
    vmName: domain.name,
    status: statusOf(domain),
    ...(domain.pid === undefined ? {} : { pid: domain.pid }),
    emulatedMachine: domain.machine,
    // Guests under TCG get a little less than the MiB that they were given.
    memSize: Math.ceil(definition.memoryKib / 1024),
    smp: String(sockets * cores * threads),
    uuid: definition.firmware.uuid,
    ...(reading === undefined ? {} : { hash: reading.hash, deviceRevision: reading.revision }),
    devices: (reading?.devices ?? learnedFrom(definition)).map(hostDeviceOf),
  };
}

function statusOf({ current }: Domain): HostVm['status'] {
  if (current.state === 'ended') return 'Down';
  return current.state === 'paused' ? 'Paused' : 'Up';
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === 'string');
}
