/** Places of disks on a SATA or SCSI controller, in libvirt's shape. There is one controller of each; the unit is all that differs. */
import type { DeviceAddress } from '#api/learned-device.ts';

export function driveAddress(unit: number): DeviceAddress {
  return { type: 'drive', controller: '0', bus: '0', target: '0', unit: String(unit) };
}

/** Undefined where the map is no place on the first target of a first controller. */
export function unitOf(map: DeviceAddress): number | undefined {
  if (map['type'] !== 'drive') return undefined;
  const { controller = '0', bus = '0', target = '0', unit = '' } = map;
  if (controller !== '0' || bus !== '0' || target !== '0' || !/^[0-9]{1,3}$/.test(unit)) return undefined;
  return Number(unit);
}
