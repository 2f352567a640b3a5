/** Addresses of devices as people read them: `0000:01:00.0`, `scsi 0:0:0:3`. The maps are libvirt's. Pure. */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import { pciAddressFromMap, printPciAddress } from '#api/pci-address.ts';

/** The bus of a disk, of which its drive address does not tell; '' where it is unknown. */
export function driveBusOf({ specParams }: Pick<LearnedDevice, 'specParams'>): string {
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : '';
}

/** Controller, bus, target and unit. */
export function printDrive(address: DeviceAddress): string {
  return ['controller', 'bus', 'target', 'unit'].map((key) => address[key] ?? '0').join(':');
}

/** What the places on buses other than PCI are numbered by, from the outside in. */
const NUMBERED: Readonly<Record<string, readonly string[]>> = {
  usb: ['bus', 'port'],
  'virtio-serial': ['controller', 'bus', 'port'],
};

/** `0:0:1`; undefined for addresses of which nobody knows how they are numbered. */
export function printNumbered({ type = '', ...parts }: DeviceAddress): string | undefined {
  const keys = Object.hasOwn(NUMBERED, type) ? NUMBERED[type] : undefined;
  return keys?.map((key) => parts[key] ?? '0').join(':');
}

/** '' where there is none. */
export function addressText(device: Pick<LearnedDevice, 'address' | 'specParams'>): string {
  const { address = {} } = device;
  const { type, ...parts } = address;
  const pci = pciAddressFromMap(address);
  if (pci !== undefined) return printPciAddress(pci);
  if (type === 'drive') return [driveBusOf(device) || 'drive', printDrive(address)].join(' ');
  const numbered = printNumbered(address);
  if (numbered !== undefined) return `${type} ${numbered}`;
  const fields = Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1));
  return [...(type === undefined ? [] : [type]), ...fields.map(([key, value]) => `${key}=${value}`)].join(' ');
}

/** The same place, in whatever case it is written; a text that is no PCI address is only like itself. */
export function isSamePci(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}
