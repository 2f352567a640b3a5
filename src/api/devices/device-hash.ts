/**
 * Hashes all devices of a guest with their addresses. Equal devices give equal hashes, in any order and in any process.
 * A hash identifies a reading from the hypervisor; without a reading there is no hash. Pure.
 */
import { createHash } from 'node:crypto';
import type { LearnedDevice } from '#api/devices/learned-device.ts';
import { isRecord } from '#kube/meta.ts';

/** Returns the SHA-256 of the devices in hex. */
export function deviceHash(devices: readonly LearnedDevice[]): string {
  const lines = devices.map((device) => JSON.stringify(canonical(device))).sort();
  return createHash('sha256').update(lines.join('\n')).digest('hex');
}

/** Sorts keys and drops values that mean the same as their absence. */
function canonical(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonical);
  if (!isRecord(value)) return value;
  const entries = Object.entries(value).filter(([key, child]) => !isDefaultValue(key, child));
  return entries.sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, child]) => [key, canonical(child)]);
}

function isDefaultValue(key: string, value: unknown): boolean {
  if (value === undefined) return true;
  if (key === 'plugged') return value === true;
  if (key === 'readonly' || key === 'managed') return value === false;
  return isRecord(value) && Object.keys(value).length === 0;
}
