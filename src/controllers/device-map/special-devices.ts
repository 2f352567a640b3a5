/**
 * Devices that count as managed because `specialManagedDevices` of the KubeVirt object lists them, although no spec asks
 * for them. A row that is managed only for that reason carries `specialManaged`, so that it can be classified again from
 * the record alone when the list changes. Pure.
 */
import type { LearnedDevice } from '#api/learned-device.ts';

export type SpecialDevices = readonly { readonly type: string; readonly device: string }[];

const MAX_NAMED = 20;

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

/** Returns a sentence for each direction in which rows changed, for the history of the record. */
export function classificationChanges(rows: readonly LearnedDevice[], special: SpecialDevices): string[] {
  const changed = rows.map((row) => classified(row, special)).filter((row, i) => row !== rows[i]);
  const ids = (isSpecial: boolean) =>
    changed.filter(({ specialManaged }) => (specialManaged === true) === isSpecial).map(({ id }) => id);
  return [
    ...sentence(ids(true), 'managed, because specialManagedDevices lists them'),
    ...sentence(ids(false), 'unmanaged, because specialManagedDevices no longer lists them'),
  ];
}

function sentence(ids: readonly string[], change: string): string[] {
  if (ids.length === 0) return [];
  const more = ids.length > MAX_NAMED ? ` and ${ids.length - MAX_NAMED} more` : '';
  return [`these devices became ${change}: ${ids.slice(0, MAX_NAMED).join(', ')}${more}`];
}
