/**
 * Classifies special managed devices: `specialManagedDevices` of the KubeVirt object lists them, although no spec
 * requests them. A row that is managed only for that reason has `specialManaged`, so that it can be reclassified from
 * the record alone when the list changes. Pure.
 */
import type { LearnedDevice } from '#api/devices/learned-device.ts';

export type SpecialDevices = readonly { readonly type: string; readonly device: string }[];

/**
 * Reports whether the device is managed because the spec requests it or its import says so, not because of the list.
 */
export function isManagedWithoutList({ managed = false, specialManaged }: LearnedDevice): boolean {
  return managed && specialManaged !== true;
}

/** Returns the row as the list classifies it; the same row if nothing changes. */
export function classify(row: LearnedDevice, special: SpecialDevices): LearnedDevice {
  const isSpecial = !isManagedWithoutList(row) && isListed(row, special);
  if (isSpecial === (row.specialManaged === true)) return row;
  const { specialManaged: _, ...rest } = row;
  return isSpecial ? { ...rest, managed: true, specialManaged: true } : { ...rest, managed: false };
}

function isListed({ type, device }: LearnedDevice, special: SpecialDevices): boolean {
  return special.some((one) => one.type === type && one.device === device);
}

/** Reports whether the list classifies any of the rows differently from the record. */
export function isReclassified(rows: readonly LearnedDevice[], special: SpecialDevices): boolean {
  return rows.some((row) => classify(row, special) !== row);
}
