/**
 * One reading of the devices of a guest, as reported by a host: hash, revision and devices that belong together. Pure.
 */
import { type HostVm, toLearnedDevice } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';

export interface DeviceReading {
  /** The uid of the instance. */
  readonly vmId: string;
  /** The canonical machine type; empty if the host does not report it. */
  readonly machine: string;
  readonly hash: string;
  readonly revision: number;
  readonly devices: readonly LearnedDevice[];
  /** The number of devices without an id, a type or a device name; they cannot be distinguished. */
  readonly ignored: number;
}

/** Returns undefined if the host has not read the hypervisor yet: it then reports only the requested devices. */
export function toDeviceReading(vm: HostVm | undefined): DeviceReading | undefined {
  if (vm?.hash === undefined) return undefined;
  const devices = vm.devices.flatMap((device) => toLearnedDevice(device) ?? []);
  return {
    vmId: vm.vmId,
    machine: vm.emulatedMachine,
    hash: vm.hash,
    revision: vm.deviceRevision ?? 0,
    devices,
    ignored: vm.devices.length - devices.length,
  };
}
