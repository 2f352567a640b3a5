/**
 * The host API as values: verbs, codes and message shapes. The node agent serves it (node/host-api/); the device-map
 * controller and `selfsame host` call it. Keys and texts are those of the original hosts (VDSM). Pure.
 */
import type { DeviceAddress, LearnedDevice, SpecParams } from '#api/devices/learned-device.ts';

export const HOST_READ_VERBS = ['list', 'getAllVmStats'] as const;
const HOST_WRITE_VERBS = ['create', 'destroy', 'hotplugDisk', 'hotunplugDisk', 'hotplugNic', 'hotunplugNic'] as const;
export const HOST_VERBS = [...HOST_READ_VERBS, ...HOST_WRITE_VERBS] as const;
export type HostVerb = (typeof HOST_VERBS)[number];

/** Common names of client certificates: the reader may read, the operator may do everything. */
export const HOST_READER = 'selfsame-device-map';
export const HOST_OPERATOR = 'selfsame-host-operator';

/**
 * Path of a POST request. The body has the parameters as JSON; the response is a HostAnswer, always with HTTP code 200.
 */
export const hostPath = (verb: HostVerb) => `/host/v1/${verb}`;
/** Socket in the directory of the node. Every process that can open it may do everything. */
export const HOST_SOCKET = 'host.sock';

export const HOST_CODES = {
  done: { code: 0, message: 'Done' },
  noVm: { code: 1, message: 'Virtual machine does not exist' },
  exists: { code: 4, message: 'Virtual machine already exists' },
  createFailed: { code: 9, message: 'Error creating the requested virtual machine' },
  missingParameter: { code: 11, message: 'Missing required parameter' },
  unexpected: { code: 16, message: 'Unexpected exception' },
  hotplugDiskFailed: { code: 45, message: 'Failed to hot-plug disk' },
  hotunplugDiskFailed: { code: 46, message: 'Failed to hot-unplug disk' },
  hotplugNicFailed: { code: 49, message: 'Failed to hot-plug NIC' },
  hotunplugNicFailed: { code: 50, message: 'Failed to hot-unplug NIC' },
  migrating: { code: 51, message: 'VM migration in progress' },
} as const satisfies Record<string, HostStatus>;

export interface HostStatus {
  readonly code: number;
  readonly message: string;
}

/** A device in the new format. Unknown keys are echoed unchanged. */
export interface HostDevice {
  readonly type: string;
  readonly device: string;
  /** Our own id; generated if `create` sends none. */
  readonly deviceId?: string;
  readonly alias?: string;
  /** Empty if unknown: the host assigns one. */
  readonly address?: DeviceAddress | '';
  readonly bootOrder?: number | string;
  readonly specParams?: SpecParams;
  readonly readonly?: boolean | string;
  readonly name?: string;
  readonly managed?: boolean;
  readonly [key: string]: unknown;
}

/** A VM as the long form of `list` reports it; the short form has vmId and status only. */
export interface HostVm {
  readonly vmId: string;
  readonly vmName: string;
  readonly status: 'Up' | 'Paused' | 'Down' | 'WaitForLaunch' | 'Powering down';
  readonly pid?: number;
  /** The canonical machine type. */
  readonly emulatedMachine: string;
  /** MiB. */
  readonly memSize: number;
  readonly smp: string;
  /** The firmware uuid. */
  readonly uuid: string;
  /** Absent until the devices were read from the hypervisor. Hash, revision and devices belong to the same reading. */
  readonly hash?: string;
  readonly deviceRevision?: number;
  readonly devices: readonly HostDevice[];
  /** Other keys that `create` sent. */
  readonly [key: string]: unknown;
}

export interface HostVmStats {
  readonly vmId: string;
  readonly status: HostVm['status'];
  readonly pid?: number;
  readonly hash?: string;
  /**
   * '0': the hypervisor answers; '-1': it does not, and the other values may be old. Absent for a guest that has ended.
   */
  readonly monitorResponse?: string;
  /** IPv4 addresses from the guest agent, separated by blanks; empty if no agent answers. */
  readonly guestIPs?: string;
}

export interface ListParameters {
  /** False or absent: vmId and status only. */
  readonly fullStatus?: boolean;
  /** Empty or absent: all VMs. Unknown ids are left out of the response. */
  readonly vmList?: readonly string[];
  readonly onlyUUID?: boolean;
}

export interface HostAnswer {
  readonly status: HostStatus;
  readonly vmList?: readonly (HostVm | Pick<HostVm, 'vmId' | 'status'> | string)[];
  readonly statsList?: readonly HostVmStats[];
  /** Requested features that are not available, although the call succeeded. */
  readonly notes?: readonly string[];
}

export function toHostDevice({ id, ...device }: LearnedDevice): HostDevice {
  return { ...device, deviceId: id, alias: id };
}

/** Returns undefined for a device without id, type or device: it could not be identified. */
export function toLearnedDevice(device: HostDevice): LearnedDevice | undefined {
  const { type, device: kind, deviceId, address, bootOrder, specParams, name, managed } = device;
  if (!deviceId || !type || !kind) return undefined;
  const order = Number(bootOrder ?? 0);
  return {
    id: deviceId,
    type,
    device: kind,
    ...(name === undefined ? {} : { name }),
    ...(address === undefined || address === '' ? {} : { address }),
    ...(Number.isSafeInteger(order) && order > 0 ? { bootOrder: order } : {}),
    ...(managed === undefined ? {} : { managed }),
    ...(String(device.readonly) === 'true' ? { readonly: true } : {}),
    ...(specParams === undefined ? {} : { specParams }),
  };
}
