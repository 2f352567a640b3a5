/** The places on disk and USB controllers. */
import type { DeviceAddress } from '#api/devices/learned-device.ts';
import {
  driveAddress,
  ideAddress,
  ideUnitOf,
  unitOf,
  USB_PORTS,
  usbAddress,
  usbPortOf,
} from '#node/hardware/drive-address.ts';
import { range, type DrivePlaces } from '#node/definition/addresses/layout.ts';

const SCSI_UNITS = 256;
const IDE_UNITS = 4;
const FLOPPY_UNITS = 2;

export const SCSI_PLACES = unitPlaces('SCSI unit', SCSI_UNITS);
const USB_UNITS = range(1, USB_PORTS);
export const FLOPPY_PLACES = unitPlaces('floppy drive', FLOPPY_UNITS);

/**
 * Traditionally, the CD-ROM drive is the third IDE unit (hdc), and disks are the first, second and fourth. If those are
 * occupied, either kind uses the remaining units.
 */
const IDE_DISK_UNITS = [0, 1, 3, 2];
const IDE_CDROM_UNITS = [2, 3, 1, 0];

export const IDE_PLACES: DrivePlaces = {
  ...unitPlaces('IDE unit', IDE_UNITS),
  addressOf: ideAddress,
  placeOf: ideUnitOf,
  placesFor: (media) => (media === 'cdrom' ? IDE_CDROM_UNITS : IDE_DISK_UNITS),
};

/** Port numbers start at 1. */
export const USB_PLACES: DrivePlaces = {
  noun: 'USB port',
  print: String,
  addressOf: usbAddress,
  placeOf: (address) => {
    const port = usbPortOf(address);
    return port !== undefined && port >= 1 && port <= USB_PORTS ? port : undefined;
  },
  placesFor: () => USB_UNITS,
};

export function unitPlaces(noun: string, count: number): DrivePlaces {
  const units = range(0, count - 1);
  return {
    noun,
    print: String,
    addressOf: driveAddress,
    placeOf: (address: DeviceAddress) => {
      const unit = unitOf(address);
      return unit !== undefined && unit < count ? unit : undefined;
    },
    placesFor: () => units,
  };
}
