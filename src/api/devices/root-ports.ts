/**
 * The root ports of q35 guests: 32 at most, eight functions in each slot from 02 on. They must never change: existing
 * guests depend on them (docs/adr/0010-guest-layout.md).
 */
import type { PciAddress } from '#api/devices/pci-address.ts';

const FIRST_PORT_SLOT = 0x02;
const PORTS_PER_SLOT = 8;
export const MAX_PORTS = 32;
/** The minimum number of empty ports at a start, for hotplugged devices. */
const SPARE_PORTS = 4;

/** Returns the id of the port, in records and in QEMU. */
export function rootPortId(index: number): string {
  return `rp${index}`;
}

/** Returns the address of the port itself. */
export function rootPortAddress(index: number): PciAddress {
  const slot = FIRST_PORT_SLOT + Math.floor(index / PORTS_PER_SLOT);
  return { domain: 0, bus: 0, slot, function: index % PORTS_PER_SLOT };
}

/**
 * Returns the address of the device behind the port. The firmware numbers buses in the order of the ports, so no other
 * bridge may ever be before or between them.
 */
export function behindPort(index: number): PciAddress {
  return { domain: 0, bus: index + 1, slot: 0, function: 0 };
}

/** Returns the port that leads to the address, or undefined if there is none. */
export function portOf({ domain, bus, slot, function: fn }: PciAddress): number | undefined {
  const isBehindPort = domain === 0 && slot === 0 && fn === 0 && bus >= 1 && bus <= MAX_PORTS;
  return isBehindPort ? bus - 1 : undefined;
}

/**
 * Returns the number of ports for a guest: whole slots, so that the addresses of ports do not depend on their number. A
 * new guest gets spares up to the limit. Later no port vanishes, and new ones come only when a device needs one of them,
 * again with spares: ports are hardware as well.
 */
export function countPorts(usedPorts: ReadonlySet<number>, previousCount: number): number {
  const needed = Math.max(-1, ...usedPorts) + 1;
  const count =
    needed <= previousCount && previousCount > 0 ? previousCount : Math.max(needed, usedPorts.size + SPARE_PORTS);
  return Math.min(MAX_PORTS, Math.ceil(count / PORTS_PER_SLOT) * PORTS_PER_SLOT);
}
