/**
 * The layout of i440fx guests. It must never change: existing guests depend on it (docs/adr/0012-i440fx-layout.md).
 *
 *   pci.0   00      host bridge
 *           01      chipset: ISA (01.0) with the floppy controller, IDE (01.1), USB (01.2), power (01.3)
 *           02      video
 *           03-1f   everything else, in the order of definition
 *
 * There are no root ports: devices are hotplugged directly into the bus.
 */
import { FLOPPY_PLACES, IDE_PLACES, SCSI_PLACES, USB_PLACES } from '#node/definition/addresses/drive-places.ts';
import { range, type Layout, type PciPlaces } from '#node/definition/addresses/layout.ts';
import { pciAddressFromMap, pciAddressToMap, formatPciAddress, type PciAddress } from '#api/devices/pci-address.ts';

const VIDEO_SLOT = 0x02;
const LAST_SLOT = 0x1f;
const DEFAULT_SLOTS = range(VIDEO_SLOT + 1, LAST_SLOT);

/** A place is a slot. */
const toPciAddress = (slot: number): PciAddress => ({ domain: 0, bus: 0, slot, function: 0 });
const isPlace = (slot: number) => slot >= VIDEO_SLOT && slot <= LAST_SLOT;
const print = (slot: number) => formatPciAddress(toPciAddress(slot));

const PCI: PciPlaces = {
  noun: 'PCI slot',
  print,
  addressOf: (slot) => pciAddressToMap(toPciAddress(slot)),
  placeOf: (map) => {
    const address = pciAddressFromMap(map);
    if (address === undefined) return undefined;
    const { domain, bus, slot, function: fn } = address;
    return domain === 0 && bus === 0 && fn === 0 && isPlace(slot) ? slot : undefined;
  },
  isPluggable: isPlace,
  defaultPlaces: DEFAULT_SLOTS,
  range: `${print(VIDEO_SLOT)} to ${print(LAST_SLOT)} (bus and function are 0)`,
  placesFor: (fixture) => (fixture === 'video' ? [VIDEO_SLOT, ...DEFAULT_SLOTS] : DEFAULT_SLOTS),
};

export const I440FX_LAYOUT: Layout = {
  chipset: 'i440fx',
  pci: PCI,
  drives: { ide: IDE_PLACES, fdc: FLOPPY_PLACES, scsi: SCSI_PLACES, usb: USB_PLACES },
  cdromBus: 'ide',
  hasPorts: false,
  portCount: () => 0,
};
