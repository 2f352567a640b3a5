/**
 * Classifies devices for libvirt's layout of PCI addresses: by device class, which decides the order, and by the kind
 * of slot that they need. Rows come from identity records, OVFs, libvirt domains and the host API. Pure.
 */
import type { Chipset } from '#api/devices/chipset.ts';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import type { Slot } from '#api/libvirt-layout/pci-buses.ts';

/** Device classes in the order in which libvirt assigns addresses, unchanged since libvirt 0.8 (ADR 19). */
const CLASSES = [
  ...['filesystem', 'interface', 'sound', 'controller', 'disk', 'hostdev', 'balloon', 'rng', 'watchdog', 'video'],
  ...['shmem', 'input', 'vsock'],
] as const;

type DeviceClass = (typeof CLASSES)[number];

export interface PciHardware {
  readonly class: DeviceClass;
  readonly slot: Slot;
}

/** Returns undefined for devices that have no PCI address of their own. */
export function pciHardwareOf(row: LearnedDevice, chipset: Chipset): PciHardware | undefined {
  const deviceClass = CLASSES.find((known) => known === row.type);
  const isExpress = deviceClass === undefined ? undefined : EXPRESS[deviceClass](row);
  if (deviceClass === undefined || isExpress === undefined) return undefined;
  return { class: deviceClass, slot: isExpress && chipset === 'q35' ? 'pcie' : 'pci' };
}

export function classRankOf({ class: deviceClass }: PciHardware): number {
  return CLASSES.indexOf(deviceClass);
}

/** By class: reports whether the device is PCI Express on q35; undefined if it is not a PCI device. */
const EXPRESS: Readonly<Record<DeviceClass, (row: LearnedDevice) => boolean | undefined>> = {
  filesystem: () => true,
  interface: ({ device }) => device === 'virtio' || device === 'e1000e',
  sound: ({ device }) => (['sb16', 'pcspk', 'usb'].includes(device) ? undefined : false),
  controller: (row) => CONTROLLERS.get(row.device)?.(specModelOf(row)),
  disk: (row) => (specParamOf(row, 'bus') === 'virtio' ? true : undefined),
  hostdev: () => true,
  balloon: (row) => (specModelOf(row) === 'none' ? undefined : true),
  rng: () => true,
  watchdog: (row) => ((specModelOf(row) ?? row.device) === 'ib700' ? undefined : false),
  video: ({ device }) => (['none', 'ramfb'].includes(device) ? undefined : ['virtio', 'bochs'].includes(device)),
  shmem: () => false,
  input: (row) => (specParamOf(row, 'bus') === 'virtio' ? true : undefined),
  vsock: () => true,
};

const CONTROLLERS = new Map<string, (model: string | undefined) => boolean | undefined>([
  ['virtio-scsi', () => true],
  ['scsi', (model) => model === 'virtio-scsi'],
  ['virtio-serial', () => true],
  ['usb', (model) => (model === 'none' ? undefined : model === 'qemu-xhci' || model === 'nec-xhci')],
  ['sata', () => false],
]);

/** The functions of a USB 2 controller: all of them share a slot. */
const USB2_FUNCTIONS: ReadonlyMap<string, number> = new Map([
  ['ich9-uhci1', 0],
  ['ich9-uhci2', 1],
  ['ich9-uhci3', 2],
  ['ich9-ehci1', 7],
]);

/** Returns undefined for devices that are not part of a USB 2 controller. */
export function usb2FunctionOf(row: LearnedDevice): number | undefined {
  return row.type === 'controller' && row.device === 'usb' ? USB2_FUNCTIONS.get(specModelOf(row) ?? '') : undefined;
}

/** Returns the type of a controller; libvirt numbers controllers by type. */
export function controllerType({ device }: LearnedDevice): string {
  if (device === 'virtio-scsi') return 'scsi';
  return device === 'pcie-root-port' ? 'pci' : device;
}

export function controllerIndex(row: LearnedDevice): number {
  const index = Number(specParamOf(row, 'index') ?? 0);
  return Number.isSafeInteger(index) && index >= 0 ? index : 0;
}

export function specModelOf(row: LearnedDevice): string | undefined {
  return specParamOf(row, 'model');
}

export function specParamOf({ specParams }: LearnedDevice, key: string): string | undefined {
  const value = specParams !== undefined && Object.hasOwn(specParams, key) ? specParams[key] : undefined;
  return typeof value === 'string' && value !== '' ? value : undefined;
}
