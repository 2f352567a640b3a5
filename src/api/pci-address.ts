/**
 * PCI addresses between their two shapes: `0000:05:00.0`, as people and the guest write them, and the map in libvirt's
 * shape, as the identity record keeps them. What stands where in a guest is the node's to say. Pure.
 */
import type { DeviceAddress } from '#api/learned-device.ts';

export interface PciAddress {
  readonly domain: number;
  readonly bus: number;
  readonly slot: number;
  readonly function: number;
}

const TEXT = /^([0-9a-f]{4}):([0-9a-f]{2}):([0-1][0-9a-f])\.([0-7])$/i;

/** Undefined where it is no PCI address. */
export function parsePciAddress(text: string): PciAddress | undefined {
  const parts = TEXT.exec(text);
  if (parts === null) return undefined;
  const [domain = 0, bus = 0, slot = 0, fn = 0] = parts.slice(1).map((part) => Number.parseInt(part, 16));
  return { domain, bus, slot, function: fn };
}

export function printPciAddress({ domain, bus, slot, function: fn }: PciAddress): string {
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

/** Undefined where the map is the address of something else, or damaged. */
export function pciAddressFromMap(map: DeviceAddress): PciAddress | undefined {
  if (map['type'] !== 'pci') return undefined;
  const domain = numberIn(map['domain'], 0xffff);
  const bus = numberIn(map['bus'], 0xff);
  const slot = numberIn(map['slot'], 0x1f);
  const fn = numberIn(map['function'], 7);
  if (domain === undefined || bus === undefined || slot === undefined || fn === undefined) return undefined;
  return { domain, bus, slot, function: fn };
}

/** Any address, for people. */
export function printAddress(map: DeviceAddress): string {
  const pci = pciAddressFromMap(map);
  return pci === undefined ? JSON.stringify(map) : printPciAddress(pci);
}

function numberIn(text: string | undefined, max: number): number | undefined {
  if (text === undefined || !/^(?:0x[0-9a-f]{1,4}|[0-9]{1,5})$/i.test(text)) return undefined;
  const value = Number(text);
  return value <= max ? value : undefined;
}

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}
