/**
 * Devices that count as managed because `specialManagedDevices` of the KubeVirt object lists them, although no spec asks
 * for them. A row that is managed only for that reason carries `specialManaged`, so that it can be classified again from
 * the record alone when the list changes. Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';

export type SpecialDevices = readonly { readonly type: string; readonly device: string }[];

/** Reports whether the spec asks for the device, or its import said so: whether it is managed without the list. */
export function isManagedByItself({ managed = false, specialManaged }: LearnedDevice): boolean {
  return managed && specialManaged !== true;
}

/** Returns the row as the list classifies it; the same row if nothing changes. */
export function classified(row: LearnedDevice, special: SpecialDevices): LearnedDevice {
  const isSpecial = !isManagedByItself(row) && isListed(row, special);
  if (isSpecial === (row.specialManaged === true)) return row;
  const { specialManaged: _, ...rest } = row;
  return isSpecial ? { ...rest, managed: true, specialManaged: true } : { ...rest, managed: false };
}

function isListed({ type, device }: LearnedDevice, special: SpecialDevices): boolean {
  return special.some((one) => one.type === type && one.device === device);
}

/** Reports whether the list classifies one of the rows in another way than the record does. */
export function isClassifiedAnew(rows: readonly LearnedDevice[], special: SpecialDevices): boolean {
  return rows.some((row) => classified(row, special) !== row);
}
