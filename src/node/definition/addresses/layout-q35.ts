/**
 * Where everything stands in a q35 guest. Final: running guests remember it (docs/adr/0010-guest-layout.md). A new kind
 * of device takes a place that is reserved for it here; nothing that has a place is ever given another.
 *
 *   pcie.0   00      host bridge
 *            01      reserved: video
 *            02-05   32 root ports, eight functions each: rp0 is 02.0, rp31 is 05.7
 *            06      scsi0
 *            07      reserved: virtio-serial
 *            08      balloon0
 *            09      rng0
 *            0a      reserved: usb
 *            0b      reserved: watchdog
 *            1b      reserved: sound
 *            1f      the chipset's own: LPC, SATA (1f.2), SMBus
 *   bus N+1  00.0    what is plugged into rpN: network interfaces and virtio disks
 */
import { pciAddressToMap, type PciAddress } from '#node/definition/addresses/pci-address.ts';
import type { DeviceAddress } from '#api/learned-device.ts';

const FIRST_PORT_SLOT = 0x02;
export const PORTS_PER_SLOT = 8;
export const MAX_PORTS = 32;
/** Empty ports that a guest starts with at least, for devices that are plugged in while it runs. */
export const SPARE_PORTS = 4;

export const SATA_UNITS = 6;
export const SCSI_UNITS = 256;

const FIXED_SLOTS = { scsi0: 0x06, balloon0: 0x08, rng0: 0x09 } as const;

export function fixedAddress(id: keyof typeof FIXED_SLOTS): DeviceAddress {
  return pciAddressToMap({ domain: 0, bus: 0, slot: FIXED_SLOTS[id], function: 0 });
}

/** Of the port itself. */
export function rootPortAddress(index: number): PciAddress {
  const slot = FIRST_PORT_SLOT + Math.floor(index / PORTS_PER_SLOT);
  return { domain: 0, bus: 0, slot, function: index % PORTS_PER_SLOT };
}

/**
 * Of what is plugged into the port. The firmware numbers buses in the order of the ports, and no other bridge may ever
 * stand before or between them.
 */
export function behindPort(index: number): PciAddress {
  return { domain: 0, bus: index + 1, slot: 0, function: 0 };
}

/** The port behind which an address is; undefined where there is none. */
export function portOf({ domain, bus, slot, function: fn }: PciAddress): number | undefined {
  const isBehindPort = domain === 0 && slot === 0 && fn === 0 && bus >= 1 && bus <= MAX_PORTS;
  return isBehindPort ? bus - 1 : undefined;
}

/**
 * How many ports a guest gets: whole slots, so that those that it has never depend on the number; as many as it had
 * before, so that no port vanishes; and spares, as long as there are any.
 */
export function portCount(taken: ReadonlySet<number>, before: number): number {
  const highest = Math.max(-1, ...taken);
  const wanted = Math.max(before, highest + 1, taken.size + SPARE_PORTS);
  return Math.min(MAX_PORTS, Math.ceil(wanted / PORTS_PER_SLOT) * PORTS_PER_SLOT);
}
