/** Lists the devices that the template of a VM requests, by the ids that they have in a guest. Pure. */
import { interfacesOf } from '#api/devices/attached-interfaces.ts';
import { allowsVideo, listFixedDevices, isFixedDeviceId, VIDEO_ID } from '#api/devices/fixed-devices.ts';
import { type VirtualMachine, templateSpec } from '#api/virtual-machine/kind.ts';

interface DeviceRequest {
  /** False if the device is attached to the VM but not plugged into the guest. */
  readonly plugged: boolean;
}

export type DeviceRequests = ReadonlyMap<string, DeviceRequest>;

/** Types of devices that the template controls; all others come with the machine or were found in the guest. */
const REQUESTABLE_TYPES: ReadonlySet<string> = new Set(['disk', 'interface', 'rng', 'balloon']);

/** Reports whether a template can request the device. */
export function isRequestable({ id, type }: { readonly id: string; readonly type: string }): boolean {
  return REQUESTABLE_TYPES.has(type) || isFixedDeviceId(id);
}

export function requestedDevices(vm: Pick<VirtualMachine, 'spec'>): DeviceRequests {
  const spec = templateSpec(vm);
  const { disks = [], rng, autoattachMemBalloon } = spec.domain.devices ?? {};
  const requests = new Map<string, DeviceRequest>();
  for (const { name, plugged } of disks) requests.set(`disk-${name}`, { plugged: plugged !== false });
  for (const { name, state } of interfacesOf(spec)) requests.set(`nic-${name}`, { plugged: state !== 'absent' });
  if (rng !== undefined) requests.set('rng0', { plugged: true });
  if (autoattachMemBalloon !== false) requests.set('balloon0', { plugged: true });
  for (const { id } of listFixedDevices(spec.domain.devices ?? {})) requests.set(id, { plugged: true });
  if (allowsVideo(spec.domain.devices ?? {})) requests.set(VIDEO_ID, { plugged: true });
  return requests;
}
