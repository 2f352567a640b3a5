/**
 * The layout of q35 guests. It must never change: existing guests depend on it (docs/adr/0010-guest-layout.md). A new
 * kind of device gets one of the free places; a place that is assigned below never changes.
 *
 *   pcie.0   00      host bridge
 *            01      video
 *            02-05   32 root ports, eight functions each: rp0 is 02.0, rp31 is 05.7
 *            06      scsi0
 *            07      virtio-serial
 *            08      balloon0
 *            09      rng0
 *            0a      usb
 *            0b      watchdog
 *            0c-1a   free: for devices whose place is occupied or that have none (conventional interfaces, virtio inputs)
 *            1b      sound
 *            1c-1e   free
 *            1f      chipset: LPC, SATA (1f.2), SMBus
 *   bus N+1  00.0    the device behind rpN: a network interface or a virtio disk
 */
import { SCSI_PLACES, unitPlaces, USB_PLACES } from '#node/definition/addresses/drive-places.ts';
import { range, type Fixture, type Layout, type PciPlaces } from '#node/definition/addresses/layout.ts';
import { pciAddressFromMap, pciAddressToMap, formatPciAddress, type PciAddress } from '#api/devices/pci-address.ts';
import { behindPort, countPorts, MAX_PORTS, portOf } from '#api/devices/root-ports.ts';

const SATA_UNITS = 6;

const FIXED_SLOTS: Readonly<Record<Exclude<Fixture, 'spare'>, number>> = {
  video: 0x01,
  scsi: 0x06,
  'virtio-serial': 0x07,
  balloon: 0x08,
  rng: 0x09,
  usb: 0x0a,
  watchdog: 0x0b,
  sound: 0x1b,
};
const FREE_SLOTS = [...range(0x0c, 0x1a), ...range(0x1c, 0x1e)];
const ROOT_SLOTS: ReadonlySet<number> = new Set([...Object.values(FIXED_SLOTS), ...FREE_SLOTS]);

/** A place below MAX_PORTS is the index of a port; a slot of the root bus is this offset plus the slot. */
const ROOT_BUS = 0x100;

const isPort = (place: number) => place < MAX_PORTS;
const toPciAddress = (place: number): PciAddress =>
  isPort(place) ? behindPort(place) : { domain: 0, bus: 0, slot: place - ROOT_BUS, function: 0 };

function placeAt(address: PciAddress): number | undefined {
  const { domain, bus, slot, function: fn } = address;
  const isOnRootBus = domain === 0 && bus === 0 && fn === 0 && ROOT_SLOTS.has(slot);
  return isOnRootBus ? ROOT_BUS + slot : portOf(address);
}

const PCI: PciPlaces = {
  noun: 'PCI port',
  print: (place) => formatPciAddress(toPciAddress(place)),
  addressOf: (place) => pciAddressToMap(toPciAddress(place)),
  placeOf: (map) => {
    const address = pciAddressFromMap(map);
    return address && placeAt(address);
  },
  isPluggable: isPort,
  defaultPlaces: range(0, MAX_PORTS - 1),
  range: `${formatPciAddress(behindPort(0))} to ${formatPciAddress(behindPort(MAX_PORTS - 1))} (slot and function are 0)`,
  placesFor: (fixture) =>
    [...(fixture === 'spare' ? [] : [FIXED_SLOTS[fixture]]), ...FREE_SLOTS].map((slot) => ROOT_BUS + slot),
};

export const Q35_LAYOUT: Layout = {
  chipset: 'q35',
  pci: PCI,
  drives: { sata: unitPlaces('SATA unit', SATA_UNITS), scsi: SCSI_PLACES, usb: USB_PLACES },
  cdromBus: 'sata',
  hasPorts: true,
  portCount: (taken, before) => countPorts(new Set([...taken].filter(isPort)), before),
};
