/** Returns the addresses of a machine's devices by id, sorted, for tests. */
import { formatAddress } from '#api/devices/device-address.ts';
import type { MachineDescription } from '#formats/machine.ts';

export function placesOf({ rows }: Pick<MachineDescription, 'rows'>): Record<string, string> {
  const sorted = rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return Object.fromEntries(sorted.map((row) => [row.id, formatAddress(row)]));
}
