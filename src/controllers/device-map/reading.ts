/** One reading of a guest's devices, as a host told it: hash, revision and devices that belong together. Pure. */
import { type HostVm, learnedDeviceOf } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/learned-device.ts';

export interface Reading {
  /** The uid of the instance. */
  readonly vmId: string;
  /** The canonical machine type; empty where the host does not tell. */
  readonly machine: string;
  readonly hash: string;
  readonly revision: number;
  readonly devices: readonly LearnedDevice[];
  /** How many devices nobody could tell from others: without an id, a type, or a device. */
  readonly leftOut: number;
}

/** Undefined where nothing was read from the hypervisor yet: what is told then is only what was asked for. */
export function readingOf(vm: HostVm | undefined): Reading | undefined {
  if (vm?.hash === undefined) return undefined;
  const devices = vm.devices.flatMap((device) => learnedDeviceOf(device) ?? []);
  return {
    vmId: vm.vmId,
    machine: vm.emulatedMachine,
    hash: vm.hash,
    revision: vm.deviceRevision ?? 0,
    devices,
    leftOut: vm.devices.length - devices.length,
  };
}
