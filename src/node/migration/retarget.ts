/**
 * Adapts the definition of a migrating guest to this node: replaces all paths by those of the prepared volumes, and keeps
 * everything that the guest can see. Pure.
 */
import { interfacesOf, networksOf } from '#api/devices/attached-interfaces.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import type { FieldError } from '#kube/field-error.ts';
import { defineCpu } from '#node/definition/cpu.ts';
import { defineAttachment, defineNetwork, type NetworkFacts } from '#node/definition/devices/attachment.ts';
import type { Device, DomainDefinition, InterfaceDevice } from '#node/hardware/domain-definition.ts';
import { defineMemoryKib } from '#node/definition/memory.ts';
import type { GuestKernel } from '#node/guests/node-facts.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';
import type { PreparedVolume } from '#node/volumes/volumes-port.ts';

const KIB_OF_MIB = 1024;

export interface TargetFacts {
  /** The instance that the guest must belong to. */
  readonly instance: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** Volumes by name. */
  readonly volumes: ReadonlyMap<string, PreparedVolume>;
  readonly kernel: GuestKernel | undefined;
  readonly stateDirectory: string | undefined;
  readonly capabilities: Capabilities;
  /** Limits the resources of the guest: the source node cannot grant more than the spec. */
  readonly spec: VmiSpec;
  /** The networks of the instance on this node; undefined if guests have no network namespaces here. */
  readonly network?: NetworkFacts | undefined;
}

type RetargetResult = { readonly definition: DomainDefinition } | { readonly refused: string };

export function retarget(source: DomainDefinition, target: TargetFacts): RetargetResult {
  const { instance, capabilities } = target;
  if (source.id !== instance.uid || source.name !== `${instance.namespace}/${instance.name}`) {
    return { refused: `the guest belongs to "${source.name}" instead of "${instance.namespace}/${instance.name}"` };
  }
  if (!capabilities.machines.some(({ name }) => name === source.machine)) {
    return { refused: `the target node does not support machine type "${source.machine}"` };
  }
  const excess = excessReason(source, target);
  if (excess !== undefined) return { refused: excess };
  const devices = source.devices.map((device) => retargetDevice(device, target));
  const refused = devices.find((device) => 'refused' in device);
  if (refused !== undefined) return refused;
  const kernel = retargetKernel(source, target);
  const state = retargetState(source, target);
  for (const part of [kernel, state]) if (part !== undefined && 'refused' in part) return part;
  const network = retargetNetwork(source, target);
  if (network !== undefined && 'refused' in network) return network;
  const { kernel: _kernel, state: _state, network: _network, ...rest } = source;
  return {
    definition: {
      ...rest,
      devices: devices as readonly Device[],
      ...(kernel && { kernel: kernel as NonNullable<DomainDefinition['kernel']> }),
      ...(state && { state: state as NonNullable<DomainDefinition['state']> }),
      ...(network && { network }),
    },
  };
}

interface RetargetRefusal {
  readonly refused: string;
}

/**
 * Returns why the guest has more resources than its instance, or undefined. Also refuses a CPU that differs because the
 * nodes have different processors or accelerators.
 */
function excessReason(
  { cpu, memoryKib }: DomainDefinition,
  { spec: { domain }, capabilities }: TargetFacts,
): string | undefined {
  const here = defineCpu(domain, capabilities, undefined, []);
  if (!deepEqual(cpu, here)) {
    return `the CPU of the guest (${cpuText(cpu)}) differs from its CPU on the target node (${cpuText(here)})`;
  }
  const isLarger = memoryKib >= defineMemoryKib(domain, capabilities, []) + KIB_OF_MIB;
  return isLarger ? 'the guest has more memory than its instance requests' : undefined;
}

function cpuText({ model, sockets, cores, threads }: DomainDefinition['cpu']): string {
  return `${model}, ${sockets} sockets of ${cores} cores of ${threads} threads`;
}

/** Returns the network namespace's description; a guest without one, of an earlier version, stays without. */
function retargetNetwork(
  { network }: DomainDefinition,
  { instance, spec, network: facts }: TargetFacts,
): DomainDefinition['network'] | RetargetRefusal {
  if (network === undefined) return undefined;
  if (facts === undefined) return { refused: 'the target node has no network for the guest' };
  return defineNetwork({ metadata: instance, spec }, facts);
}

/** Attaches an interface as the target node would at a start: the source node chooses neither network nor address. */
function retargetAttachment(device: InterfaceDevice, { spec, network: facts }: TargetFacts): Device | RetargetRefusal {
  const item = interfacesOf(spec).find(({ name }) => name === device.name);
  const network = networksOf(spec).find(({ name }) => name === device.name);
  if (item === undefined || network === undefined || facts === undefined) {
    return { refused: `interface "${device.name}" has no network on the target node` };
  }
  const problems: FieldError[] = [];
  const backend = defineAttachment(item, network, { networks: networksOf(spec), facts }, device.name, problems);
  const [problem] = problems;
  if (problem !== undefined) return { refused: `interface "${device.name}": ${problem.message}` };
  return { ...device, backend: backend ?? { type: 'user' } };
}

function retargetInterface(device: InterfaceDevice, target: TargetFacts): Device | RetargetRefusal {
  const { backend, name } = device;
  if (backend.type === 'pod') return retargetAttachment(device, target);
  const { networks = [] } = target.spec;
  if (backend.type !== 'bridge' || networks.some(({ multus }) => multus?.networkName === backend.bridge)) return device;
  return { refused: `interface "${name}" uses bridge "${backend.bridge}", which is not a network of its instance` };
}

function retargetDevice(device: Device, target: TargetFacts): Device | RetargetRefusal {
  const { volumes } = target;
  if (device.type === 'interface') return retargetInterface(device, target);
  if (device.type !== 'disk' || device.source === undefined) return device;
  const volume = device.id === `disk-${device.name}` ? volumes.get(device.name) : undefined;
  if (volume === undefined) return { refused: `no volume was prepared for disk "${device.name}"` };
  if (volume.readonly && !device.readonly) return { refused: `disk "${device.name}" is read-only on the target node` };
  // The guest cannot see the cache mode, so it is chosen as for a start on this node.
  const cache = volume.cacheNone === false && device.cache === 'none' ? 'writeback' : device.cache;
  return { ...device, source: volume.source, cache };
}

function retargetKernel(
  { kernel }: DomainDefinition,
  target: TargetFacts,
): DomainDefinition['kernel'] | RetargetRefusal {
  if (kernel === undefined) return undefined;
  if (target.kernel === undefined) return { refused: 'the built-in guest is not installed on the target node' };
  const { kernelPath, initrdPath } = target.kernel;
  return { kernelPath, ...(kernel.initrdPath !== undefined && { initrdPath }), arguments: kernel.arguments };
}

function retargetState(
  { state }: DomainDefinition,
  { stateDirectory }: TargetFacts,
): DomainDefinition['state'] | RetargetRefusal {
  if (state === undefined) return undefined;
  if (stateDirectory === undefined) return { refused: 'no volume was prepared for the persistent state of the guest' };
  return { directory: stateDirectory };
}
