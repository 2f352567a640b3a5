/**
 * Formats device addresses for display: `0000:01:00.0`, `scsi 0:0:0:3`. The address maps have libvirt's shape. Pure.
 */
import type { DeviceAddress, LearnedDevice } from '#api/devices/learned-device.ts';
import { pciAddressFromMap, formatPciAddress } from '#api/devices/pci-address.ts';

/** Returns the bus of a disk, which its drive address does not contain; '' if it is unknown. */
export function driveBusOf({ specParams }: Pick<LearnedDevice, 'specParams'>): string {
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : '';
}

/** Returns controller, bus, target and unit: `0:0:0:3`. */
export function formatDrive(address: DeviceAddress): string {
  return ['controller', 'bus', 'target', 'unit'].map((key) => address[key] ?? '0').join(':');
}

/** The numeric parts of addresses on buses other than PCI, outermost first. */
const NUMBERED: Readonly<Record<string, readonly string[]>> = {
  usb: ['bus', 'port'],
  'virtio-serial': ['controller', 'bus', 'port'],
};

/** Returns `0:0:1`, or undefined if the parts of the address are not known. */
export function formatNumbered({ type = '', ...parts }: DeviceAddress): string | undefined {
  const keys = Object.hasOwn(NUMBERED, type) ? NUMBERED[type] : undefined;
  return keys?.map((key) => parts[key] ?? '0').join(':');
}

/** Returns the address of any device as text, or '' if it has none. */
export function formatAddress(device: Pick<LearnedDevice, 'address' | 'specParams'>): string {
  const { address = {} } = device;
  const { type, ...parts } = address;
  const pci = pciAddressFromMap(address);
  if (pci !== undefined) return formatPciAddress(pci);
  if (type === 'drive') return [driveBusOf(device) || 'drive', formatDrive(address)].join(' ');
  const numbered = formatNumbered(address);
  if (numbered !== undefined) return `${type} ${numbered}`;
  const fields = Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1));
  return [...(type === undefined ? [] : [type]), ...fields.map(([key, value]) => `${key}=${value}`)].join(' ');
}

/** Compares two PCI addresses, ignoring case. */
export function isSamePci(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
