/** What happened to the devices of a VM, in words, for the history of its record. Pure. */
import type { DeviceAddress, LearnedDevice } from '#api/learned-device.ts';
import { isRootPort } from '#controllers/device-map/action-table.ts';

/** One start must not push everything before it out of the history. */
const MAX_CHANGES = 20;

/** Each device that came, went, moved, or was plugged in or out. Empty ports come and go unheard. */
export function deviceChanges(before: readonly LearnedDevice[], after: readonly LearnedDevice[]): string[] {
  const old = new Map(before.map((device) => [device.id, device]));
  const changes: string[] = [];
  for (const device of after) {
    const known = old.get(device.id);
    old.delete(device.id);
    const change = known === undefined ? newText(device) : changeText(known, device);
    if (change !== undefined) changes.push(change);
  }
  for (const device of old.values()) {
    if (!isRootPort(device)) changes.push(`${device.id} is gone from ${addressText(device.address)}`);
  }
  if (changes.length <= MAX_CHANGES) return changes;
  const told = changes.slice(0, MAX_CHANGES - 1);
  return [...told, `${changes.length - told.length} more changes of devices`];
}

function newText(device: LearnedDevice): string | undefined {
  if (isRootPort(device)) return undefined;
  return `${device.id} is new at ${addressText(device.address)}${device.plugged === false ? ', unplugged' : ''}`;
}

function changeText(known: LearnedDevice, { id, address, plugged }: LearnedDevice): string | undefined {
  const [from, to] = [addressText(known.address), addressText(address)];
  const [wasPlugged, isPlugged] = [known.plugged !== false, plugged !== false];
  if (wasPlugged && !isPlugged) return `${id} is unplugged; ${from} is ${address === undefined ? 'released' : 'kept'}`;
  if (!wasPlugged && isPlugged) return `${id} is plugged in at ${to}`;
  return from === to ? undefined : `${id} moved from ${from} to ${to}`;
}

/** Addresses are compared as maps: the order of keys says nothing. */
function addressText(address: DeviceAddress = {}): string {
  const fields = Object.entries(address).sort(([a], [b]) => (a < b ? -1 : 1));
  return fields.length === 0 ? 'no address' : fields.map(([key, value]) => `${key}=${value}`).join(',');
}
