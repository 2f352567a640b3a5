/**
 * The same guest with the paths of this node: all that it can see of itself stays, all that it stands on is replaced by what
 * was prepared here. Pure.
 */
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { deepEqual } from '#kube/deep.ts';
import { defineCpu } from '#node/definition/cpu.ts';
import type { Device, DomainDefinition, InterfaceDevice } from '#node/definition/domain-definition.ts';
import { defineMemoryKib } from '#node/definition/memory.ts';
import type { GuestKernel } from '#node/domains/start-domain.ts';
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';
import type { PreparedVolume } from '#node/volumes-port.ts';

const KIB_OF_MIB = 1024;

export interface Ground {
  /** Whose guest it is to be. */
  readonly instance: { readonly namespace: string; readonly name: string; readonly uid: string };
  /** By name of the volume. */
  readonly volumes: ReadonlyMap<string, PreparedVolume>;
  readonly kernel: GuestKernel | undefined;
  readonly stateDirectory: string | undefined;
  readonly capabilities: Capabilities;
  /** What the instance may have: whoever runs it elsewhere does not give it more here. */
  readonly spec: Pick<VmiSpec, 'domain' | 'networks'>;
}

export type Retargeted = { readonly definition: DomainDefinition } | { readonly refused: string };

export function retarget(source: DomainDefinition, ground: Ground): Retargeted {
  const { instance, capabilities } = ground;
  if (source.id !== instance.uid || source.name !== `${instance.namespace}/${instance.name}`) {
    return { refused: `the guest of ${source.name} is not that of ${instance.namespace}/${instance.name}` };
  }
  if (!capabilities.machines.some(({ name }) => name === source.machine)) {
    return { refused: `this node has no machine type ${source.machine}` };
  }
  const isMore = whyMore(source, ground);
  if (isMore !== undefined) return { refused: isMore };
  const devices = source.devices.map((device) => deviceHere(device, ground));
  const refused = devices.find((device) => 'refused' in device);
  if (refused !== undefined) return refused;
  const kernel = kernelHere(source, ground);
  const state = stateHere(source, ground);
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

interface Refused {
  readonly refused: string;
}

/** Also where the other node's processors, or its accelerator, are not what this one has. */
function whyMore({ cpu, memoryKib }: DomainDefinition, { spec: { domain }, capabilities }: Ground): string | undefined {
  const here = defineCpu(domain, capabilities, undefined, []);
  if (!deepEqual(cpu, here)) {
    return `the guest has other processors (${cpuText(cpu)}) than it would have here (${cpuText(here)})`;
  }
  const isLarger = memoryKib >= defineMemoryKib(domain, capabilities, []) + KIB_OF_MIB;
  return isLarger ? 'the guest has more memory than its instance' : undefined;
}

function cpuText({ model, sockets, cores, threads }: DomainDefinition['cpu']): string {
  return `${model}, ${sockets} sockets of ${cores} cores of ${threads} threads`;
}

function interfaceHere(device: InterfaceDevice, { spec: { networks = [] } }: Ground): Device | Refused {
  const { backend, name } = device;
  if (backend.type !== 'bridge' || networks.some(({ multus }) => multus?.networkName === backend.bridge)) return device;
  return { refused: `the interface ${name} is on the bridge ${backend.bridge}, which its instance does not name` };
}

function deviceHere(device: Device, ground: Ground): Device | Refused {
  const { volumes } = ground;
  if (device.type === 'interface') return interfaceHere(device, ground);
  if (device.type !== 'disk' || device.source === undefined) return device;
  const volume = device.id === `disk-${device.name}` ? volumes.get(device.name) : undefined;
  if (volume === undefined) return { refused: `nothing was prepared for the disk ${device.name}` };
  if (volume.readonly && !device.readonly) return { refused: `the disk ${device.name} cannot be written here` };
  // As it would be had the guest begun here: it cannot see that.
  const cache = volume.cacheNone === false && device.cache === 'none' ? 'writeback' : device.cache;
  return { ...device, source: volume.source, cache };
}

function kernelHere({ kernel }: DomainDefinition, ground: Ground): DomainDefinition['kernel'] | Refused {
  if (kernel === undefined) return undefined;
  if (ground.kernel === undefined) return { refused: 'the files of the built-in guest are not on this node' };
  const { kernelPath, initrdPath } = ground.kernel;
  return { kernelPath, ...(kernel.initrdPath !== undefined && { initrdPath }), arguments: kernel.arguments };
}

function stateHere({ state }: DomainDefinition, { stateDirectory }: Ground): DomainDefinition['state'] | Refused {
  if (state === undefined) return undefined;
  if (stateDirectory === undefined) return { refused: 'nothing was prepared for the state of the guest' };
  return { directory: stateDirectory };
}
