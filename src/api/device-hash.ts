/**
 * One word for all devices of a guest and where they are: equal for equal devices, in whatever order they are told, by
 * whatever process. It stands for data that was read from the hypervisor; where there is none there is no hash. Pure.
 */
import { createHash } from 'node:crypto';
import type { LearnedDevice } from '#api/learned-device.ts';
import { isRecord } from '#kube/meta.ts';

/** SHA-256 in hex. */
export function deviceHash(devices: readonly LearnedDevice[]): string {
  const lines = devices.map((device) => JSON.stringify(canonical(device))).sort();
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

/** Keys in order, and nothing that says what its absence says, too. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([key, child]) => !saysNothing(key, child));
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, child]) => [key, canonical(child)]);
}

function saysNothing(key: string, value: unknown): boolean {
  if (value === undefined) return true;
  if (key === 'plugged') return value === true;
  if (key === 'readonly' || key === 'managed') return value === false;
  return isRecord(value) && Object.keys(value).length === 0;
}
