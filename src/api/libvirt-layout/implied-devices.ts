/**
 * Devices that libvirt adds to a definition by itself: controllers that other devices need, and devices that every
 * domain gets. They take part in the layout, so they must be counted to compute the same addresses as libvirt. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { diskBusOf } from '#api/libvirt-layout/drive-units.ts';
import { controllerIndex, controllerType } from '#api/libvirt-layout/hardware.ts';

export interface ImpliedDevice {
  readonly row: LearnedDevice;
  /** True if the machine gets the device; otherwise its slot is only left free. */
  readonly isKept: boolean;
  /** True to place the device in a conventional PCI slot, because libvirt would have chosen another model. */
  readonly isConventional?: boolean;
}

interface ImpliedOptions {
  readonly chipset: Chipset;
  /** Devices that libvirt adds to a domain that does not mention them. */
  readonly defaults?: { readonly balloon: boolean; readonly usb: boolean } | undefined;
  /** True if the manager adds a channel of its own, and so a controller, that the rows do not list. */
  readonly hasAgentChannel?: boolean | undefined;
}

/** `drives` has the addresses of disks on their controllers, by id. */
export function listImpliedDevices(
  rows: readonly LearnedDevice[],
  drives: ReadonlyMap<string, DeviceAddress>,
  { chipset, defaults, hasAgentChannel = false }: ImpliedOptions,
): readonly ImpliedDevice[] {
  return [
    ...(defaults?.usb === true && chipset === 'q35' && !hasController(rows, 'usb', 0) ? [USB] : []),
    ...scsiControllers(rows, drives),
    ...serialController(rows, hasAgentChannel),
    ...(defaults?.balloon === true && !rows.some(({ type }) => type === 'balloon') ? [BALLOON] : []),
  ];
}

/** Only for q35: the i440fx chipset includes a USB controller. */
const USB: ImpliedDevice = {
  row: {
    ...{ id: 'usb0', type: 'controller', device: 'usb', managed: false },
    specParams: { index: '0', model: 'qemu-xhci' },
  },
  isKept: true,
};

const BALLOON: ImpliedDevice = {
  row: { id: 'balloon0', type: 'balloon', device: 'memballoon', managed: true },
  isKept: true,
};

/**
 * Returns one controller for each seven disks. libvirt adds LSI controllers, which are conventional PCI; our only
 * controller takes the address of the first.
 */
function scsiControllers(
  rows: readonly LearnedDevice[],
  drives: ReadonlyMap<string, DeviceAddress>,
): readonly ImpliedDevice[] {
  const onScsi = rows.filter((row) => row.type === 'disk' && diskBusOf(row) === 'scsi');
  const numbers = onScsi.map(({ id }) => Number(drives.get(id)?.['controller'] ?? 0));
  const count = Math.max(0, ...numbers.map((number) => number + 1));
  return Array.from({ length: count }, (_, index) => index)
    .filter((index) => !hasController(rows, 'scsi', index))
    .map((index) => ({
      row: {
        ...{ id: `scsi${index}`, type: 'controller', device: 'virtio-scsi', managed: false },
        specParams: { index: String(index) },
      },
      isKept: index === 0,
      isConventional: true,
    }));
}

function serialController(rows: readonly LearnedDevice[], hasAgentChannel: boolean): readonly ImpliedDevice[] {
  const isNeeded = rows.some(isPortUser);
  if ((!isNeeded && !hasAgentChannel) || hasController(rows, 'virtio-serial', 0)) return [];
  const row = { id: 'virtio-serial0', type: 'controller', device: 'virtio-serial', managed: false };
  return [{ row, isKept: isNeeded }];
}

/** Reports whether a device is a port of a virtio-serial controller. */
export function isPortUser({ type, specParams }: LearnedDevice): boolean {
  return type === 'channel' || (type === 'console' && specParams?.['consoleType'] === 'virtio');
}

function hasController(rows: readonly LearnedDevice[], type: string, index: number): boolean {
  return rows.some(
    (row) => row.type === 'controller' && controllerType(row) === type && controllerIndex(row) === index,
  );
}
