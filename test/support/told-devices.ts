/** Nodes for tests without agents: every guest has the same devices, and whoever asks is told at once. */
import { deviceHash } from '#api/device-hash.ts';
import { hostDeviceOf } from '#api/host-api.ts';
import type { LearnedDevice } from '#api/learned-device.ts';
import { deviceMapController } from '#controllers/device-map/device-map.ts';
import type { PlaneController } from '#controllers/plane-controller.ts';

const MACHINE = 'pc-q35-7.2';

/** What the status of an instance that runs says of them. */
export function toldDevices(devices: readonly LearnedDevice[]) {
  return { machine: { type: MACHINE }, nodeName: 'node-1', deviceHash: deviceHash(devices), deviceRevision: 1 };
}

/** Learns them; no clock has to be moved for that. */
export function learnerOf(devices: readonly LearnedDevice[]): PlaneController {
  const vm = { vmName: '', status: 'Up', emulatedMachine: MACHINE, memSize: 64, smp: '1', uuid: '' } as const;
  const reading = { hash: deviceHash(devices), deviceRevision: 1, devices: devices.map(hostDeviceOf) };
  const list = (_: string, vmIds: readonly string[]) =>
    Promise.resolve(vmIds.map((vmId) => ({ vmId, ...vm, ...reading })));
  return deviceMapController({ list }, { gatherMs: 0 });
}
