/**
 * Places of disks on their controller, in libvirt's shape. There is one controller of each kind; the unit is all that
 * differs. The map does not say of which kind the controller is.
 */
import type { DeviceAddress } from '#api/learned-device.ts';

/** Of SATA, SCSI and floppy controllers. */
export function driveAddress(unit: number): DeviceAddress {
  return { type: 'drive', controller: '0', bus: '0', target: '0', unit: String(unit) };
}

/** Undefined where the map is no place on the first target of a first controller. */
export function unitOf(map: DeviceAddress): number | undefined {
  const parts = partsOf(map);
  return parts?.bus === 0 ? parts.unit : undefined;
}

/** The IDE controller has two buses of two units: the master and slave of old. */
const UNITS_PER_IDE_BUS = 2;
const IDE_BUSES = 2;

export function ideAddress(unit: number): DeviceAddress {
  const bus = Math.floor(unit / UNITS_PER_IDE_BUS);
  return { ...driveAddress(unit % UNITS_PER_IDE_BUS), bus: String(bus) };
}

/** From 0 to 3; undefined where the map is no place on an IDE controller. */
export function ideUnitOf(map: DeviceAddress): number | undefined {
  const parts = partsOf(map);
  if (parts === undefined || parts.bus >= IDE_BUSES || parts.unit >= UNITS_PER_IDE_BUS) return undefined;
  return parts.bus * UNITS_PER_IDE_BUS + parts.unit;
}

/** A port of the one USB controller of ours. */
export function usbAddress(port: number): DeviceAddress {
  return { type: 'usb', bus: '0', port: String(port) };
}

/** Undefined where the map is none, or one behind a hub. */
export function usbPortOf(map: DeviceAddress): number | undefined {
  const { type, bus = '0', port = '' } = map;
  return type === 'usb' && bus === '0' && /^[0-9]{1,2}$/.test(port) ? Number(port) : undefined;
}

function partsOf(map: DeviceAddress): { bus: number; unit: number } | undefined {
  if (map['type'] !== 'drive') return undefined;
  const { controller = '0', bus = '0', target = '0', unit = '' } = map;
  const isFirst = controller === '0' && target === '0';
  if (!isFirst || !/^[0-9]{1,3}$/.test(bus) || !/^[0-9]{1,3}$/.test(unit)) return undefined;
  return { bus: Number(bus), unit: Number(unit) };
}
