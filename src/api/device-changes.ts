/**
 * What happened to the devices of a VM, in words, for the history of its record; and read again, for whoever asks what
 * the guest saw before. Pure.
 */
import { isRootPort, type DeviceAddress, type LearnedDevice } from '#api/learned-device.ts';

const NO_ADDRESS = 'no address';
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
  return fields.length === 0 ? NO_ADDRESS : fields.map(([key, value]) => `${key}=${value}`).join(',');
}

/** How a device was before a change that took it out of the guest, or brought it in. */
export interface Former {
  readonly id: string;
  readonly address?: DeviceAddress;
  readonly plugged: boolean;
}

const GONE = /^(\S+) is gone from (.+)$/;
const UNPLUGGED = /^(\S+) is unplugged; (.+) is (?:released|kept)$/;
const PLUGGED = /^(\S+) is plugged in at (?:.+)$/;

/** Undefined for words that tell of something else. */
export function formerOf(change: string): Former | undefined {
  const [, back] = PLUGGED.exec(change) ?? [];
  if (back !== undefined) return { id: back, plugged: false };
  const [, id, place = ''] = GONE.exec(change) ?? UNPLUGGED.exec(change) ?? [];
  if (id === undefined) return undefined;
  const address = parseAddress(place);
  return { id, ...(address && { address }), plugged: true };
}

function parseAddress(text: string): DeviceAddress | undefined {
  if (text === NO_ADDRESS) return undefined;
  const pairs = text.split(',').map((pair) => pair.split('='));
  return Object.fromEntries(pairs.flatMap(([key = '', value = '']) => (key === '__proto__' ? [] : [[key, value]])));
}
