/** Addresses of devices as people read them: `0000:01:00.0`, `scsi 0:0:0:3`. The maps are libvirt's. Pure. */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';

export interface PciPlace {
  readonly domain: number;
  readonly bus: number;
  readonly slot: number;
  readonly function: number;
}

/** Undefined for what is no PCI address, or a damaged one. */
export function pciPlaceOf(address: DeviceAddress | undefined): PciPlace | undefined {
  if (address?.['type'] !== 'pci') return undefined;
  const [domain, bus, slot, fn] = (['domain', 'bus', 'slot', 'function'] as const).map((key) => numberOf(address[key]));
  if (domain === undefined || bus === undefined || slot === undefined || fn === undefined) return undefined;
  return { domain, bus, slot, function: fn };
}

export function printPci({ domain, bus, slot, function: fn }: PciPlace): string {
  return `${hex(domain, 4)}:${hex(bus, 2)}:${hex(slot, 2)}.${fn.toString(16)}`;
}

/** The bus of a disk, of which its drive address does not tell; '' where it is unknown. */
export function driveBusOf({ specParams }: Pick<LearnedDevice, 'specParams'>): string {
  const bus = specParams?.['bus'];
  return typeof bus === 'string' ? bus : '';
}

/** Controller, bus, target and unit. */
export function printDrive(address: DeviceAddress): string {
  return ['controller', 'bus', 'target', 'unit'].map((key) => address[key] ?? '0').join(':');
}

/** '' where there is none. */
export function addressText(device: Pick<LearnedDevice, 'address' | 'specParams'>): string {
  const { address = {} } = device;
  const { type, ...parts } = address;
  const pci = pciPlaceOf(address);
  if (pci !== undefined) return printPci(pci);
  if (type === 'drive') return [driveBusOf(device) || 'drive', printDrive(address)].join(' ');
  const fields = Object.entries(parts).sort(([a], [b]) => (a < b ? -1 : 1));
  return [...(type === undefined ? [] : [type]), ...fields.map(([key, value]) => `${key}=${value}`)].join(' ');
}

/** The same place, in whatever case it is written; a text that is no PCI address is only like itself. */
export function isSamePci(a: string, b: string): boolean {
  return a.toLowerCase() === b.toLowerCase();
}

function numberOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^(?:0x[0-9a-f]{1,8}|[0-9]{1,10})$/i.test(text)) return undefined;
  return Number(text);
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
