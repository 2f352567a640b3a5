/** Stands in for the node agents: every guest has the same devices, and the device map reads them without delay. */
import { deviceHash } from '#api/devices/device-hash.ts';
import { toHostDevice } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { deviceMapController } from '#controllers/device-map/device-map.ts';
import type { PlaneController } from '#controllers/shared/plane-controller.ts';

const MACHINE = 'pc-q35-7.2';

/** Returns the status fields of a running instance that describe its devices. */
export function deviceStatusOf(devices: readonly LearnedDevice[]) {
  return { machine: { type: MACHINE }, nodeName: 'node-1', deviceHash: deviceHash(devices), deviceRevision: 1 };
}

/** Returns a device map controller that learns these devices for every instance, without waiting for the clock. */
export function staticDeviceMap(devices: readonly LearnedDevice[]): PlaneController {
  const vm = { vmName: '', status: 'Up', emulatedMachine: MACHINE, memSize: 64, smp: '1', uuid: '' } as const;
  const reading = { hash: deviceHash(devices), deviceRevision: 1, devices: devices.map(toHostDevice) };
  const list = (_: string, vmIds: readonly string[]) =>
    Promise.resolve(vmIds.map((vmId) => ({ vmId, ...vm, ...reading })));
  return deviceMapController({ list }, { gatherMs: 0 });
}
