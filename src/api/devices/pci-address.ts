/**
 * Converts PCI addresses between text, `0000:05:00.0`, and the map in libvirt's shape that identity records store. The
 * node assigns the addresses of a guest. Pure.
 */
import type { DeviceAddress } from '#api/devices/learned-device.ts';

export interface PciAddress {
  readonly domain: number;
  readonly bus: number;
  readonly slot: number;
  readonly function: number;
}

const TEXT = /^([0-9a-f]{4}):([0-9a-f]{2}):([0-1][0-9a-f])\.([0-7])$/i;

/** Returns undefined if the text is not a PCI address. */
export function parsePciAddress(text: string): PciAddress | undefined {
  const parts = TEXT.exec(text);
  if (parts === null) return undefined;
  const [domain = 0, bus = 0, slot = 0, fn = 0] = parts.slice(1).map((part) => Number.parseInt(part, 16));
  return { domain, bus, slot, function: fn };
}

export function formatPciAddress({ domain, bus, slot, function: fn }: PciAddress): string {
  return `${hex(domain, 4)}:${hex(bus, 2)}:${hex(slot, 2)}.${hex(fn, 1)}`;
}

export function pciAddressToMap({ domain, bus, slot, function: fn }: PciAddress): DeviceAddress {
  return {
    type: 'pci',
    domain: `0x${hex(domain, 4)}`,
    bus: `0x${hex(bus, 2)}`,
    slot: `0x${hex(slot, 2)}`,
    function: `0x${hex(fn, 1)}`,
  };
}

/** Returns undefined if the map is not a valid PCI address. */
export function pciAddressFromMap(map: DeviceAddress): PciAddress | undefined {
  if (map['type'] !== 'pci') return undefined;
  const domain = numberIn(map['domain'], 0xffff);
  const bus = numberIn(map['bus'], 0xff);
  const slot = numberIn(map['slot'], 0x1f);
  const fn = numberIn(map['function'], 7);
  if (domain === undefined || bus === undefined || slot === undefined || fn === undefined) return undefined;
  return { domain, bus, slot, function: fn };
}

/** Formats any address for display. */
export function formatAnyAddress(map: DeviceAddress): string {
  const pci = pciAddressFromMap(map);
  return pci === undefined ? JSON.stringify(map) : formatPciAddress(pci);
}

function numberIn(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !/^(?:0x[0-9a-f]{1,4}|[0-9]{1,5})$/i.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
