/**
 * Addresses of disks on their controller, as maps in libvirt's form. There is one controller of each kind, so only the
 * unit differs. The map does not contain the kind of the controller.
 */
import type { DeviceAddress } from '#api/devices/learned-device.ts';

/** Returns the address of a unit of a SATA, SCSI or floppy controller. */
export function driveAddress(unit: number): DeviceAddress {
  return { type: 'drive', controller: '0', bus: '0', target: '0', unit: String(unit) };
}

/** Returns the unit, or undefined if the map is not an address on the first target of a first controller. */
export function unitOf(map: DeviceAddress): number | undefined {
  const parts = parseDriveAddress(map);
  return parts?.bus === 0 ? parts.unit : undefined;
}

/** The IDE controller has two buses with two units each. */
const UNITS_PER_IDE_BUS = 2;
const IDE_BUSES = 2;

export function ideAddress(unit: number): DeviceAddress {
  const bus = Math.floor(unit / UNITS_PER_IDE_BUS);
  return { ...driveAddress(unit % UNITS_PER_IDE_BUS), bus: String(bus) };
}

/** Returns the IDE unit, 0 to 3, or undefined if the map is not an address on the IDE controller. */
export function ideUnitOf(map: DeviceAddress): number | undefined {
  const parts = parseDriveAddress(map);
  if (parts === undefined || parts.bus >= IDE_BUSES || parts.unit >= UNITS_PER_IDE_BUS) return undefined;
  return parts.bus * UNITS_PER_IDE_BUS + parts.unit;
}

/** The number of ports of a USB controller, as in libvirt. */
export const USB_PORTS = 15;

/** Returns the address of a port of the USB controller. */
export function usbAddress(port: number): DeviceAddress {
  return { type: 'usb', bus: '0', port: String(port) };
}

/** Returns the USB port, or undefined if the map is not a USB address or is behind a hub. */
export function usbPortOf(map: DeviceAddress): number | undefined {
  const { type, bus = '0', port = '' } = map;
  return type === 'usb' && bus === '0' && /^[0-9]{1,2}$/.test(port) ? Number(port) : undefined;
}

function parseDriveAddress(map: DeviceAddress): { bus: number; unit: number } | undefined {
  if (map['type'] !== 'drive') return undefined;
  const { controller = '0', bus = '0', target = '0', unit = '' } = map;
  const isFirst = controller === '0' && target === '0';
  if (!isFirst || !/^[0-9]{1,3}$/.test(bus) || !/^[0-9]{1,3}$/.test(unit)) return undefined;
  return { bus: Number(bus), unit: Number(unit) };
}
