/**
 * Converts addresses to and from oVirt's text, `{type=pci, slot=0x03, bus=0x00, domain=0x0000, function=0x0}`, with the
 * keys in any order, and to keys for comparison. The maps are libvirt's and are kept unchanged. Pure.
 */
import type { DeviceAddress } from '#api/devices/learned-device.ts';

/** The order of keys since oVirt 4.2; other keys follow in alphabetical order. */
const ORDER = [
  'type',
  'slot',
  'bus',
  'domain',
  'function',
  'controller',
  'target',
  'unit',
  'port',
  'multifunction',
  'base',
];
const MAX_KEYS = 32;

/** Returns '' for an empty address, and undefined if the text cannot represent it, such as a value with a comma. */
export function printAddressText(address: DeviceAddress): string | undefined {
  const keys = Object.keys(address).sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  if (keys.length === 0) return '';
  const pairs = keys.map((key) => [key, address[key] ?? ''] as const);
  if (pairs.some(([key, value]) => key === '' || /[,={}]|^\s|\s$/.test(key) || /[,={}]|^\s|\s$/.test(value)))
    return undefined;
  return `{${pairs.map(([key, value]) => `${key}=${value}`).join(', ')}}`;
}

function rank(key: string): number {
  const at = ORDER.indexOf(key);
  return at === -1 ? ORDER.length : at;
}

/** Returns an empty map for an empty text, and undefined if keys are repeated, invalid or too many. */
export function parseAddressText(text: string): DeviceAddress | undefined {
  const inner = text.trim().replace(/^\{/, '').replace(/\}$/, '').trim();
  if (inner === '') return {};
  const pairs = inner.split(',').map((pair) => {
    const [key = '', ...rest] = pair.split('=');
    return [key.trim(), rest.join('=').trim()] as const;
  });
  const keys = new Set(pairs.map(([key]) => key));
  if (pairs.length > MAX_KEYS || keys.size !== pairs.length || keys.has('') || keys.has('__proto__')) return undefined;
  return Object.fromEntries(pairs);
}

/** The keys that identify a place, by type of address. Their numbers are compared by value, not as text. */
const PLACE_KEYS = new Map<string, readonly string[]>([
  ['pci', ['domain', 'bus', 'slot', 'function']],
  ['drive', ['controller', 'bus', 'target', 'unit']],
  ['virtio-serial', ['controller', 'bus', 'port']],
  ['ccid', ['controller', 'slot']],
  ['usb', ['bus', 'port']],
  ['dimm', ['slot']],
]);

/** Returns a key that is equal for equal places, or undefined if there is no address. */
export function placeKey(address: DeviceAddress | undefined): string | undefined {
  if (address === undefined || Object.keys(address).length === 0) return undefined;
  const { type = 'drive' } = address;
  const keys =
    PLACE_KEYS.get(type) ??
    Object.keys(address)
      .filter((key) => key !== 'type')
      .sort();
  return [type, ...keys.map((key) => `${key}=${numberText(address[key])}`)].join(' ');
}

function numberText(text = '0'): string {
  return /^(?:0x[0-9a-f]{1,8}|[0-9]{1,10})$/i.test(text) ? String(Number(text)) : text;
}
