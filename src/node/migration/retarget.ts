/**
 * Adapts the definition of a migrating guest to this node: replaces all paths by those of the prepared volumes, and keeps
 * everything that the guest can see. Pure.
 */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { defineCpu } from '#node/definition/cpu.ts';
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
  readonly spec: Pick<VmiSpec, 'domain' | 'networks'>;
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
  const { kernel: _kernel, state: _state, ...rest } = source;
  return {
    definition: {
      ...rest,
      devices: devices as readonly Device[],
      ...(kernel && { kernel: kernel as NonNullable<DomainDefinition['kernel']> }),
      ...(state && { state: state as NonNullable<DomainDefinition['state']> }),
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

function retargetInterface(
  device: InterfaceDevice,
  { spec: { networks = [] } }: TargetFacts,
): Device | RetargetRefusal {
  const { backend, name } = device;
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
