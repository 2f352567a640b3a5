/**
 * Addresses as text, `{type=pci, slot=0x03, bus=0x00, domain=0x0000, function=0x0}`, in whatever order of keys, and as
 * places that can be compared. The maps are libvirt's and are kept as they are. Pure.
 */
import type { DeviceAddress } from '#api/learned-device.ts';

/** The order since oVirt 4.2; what is not in it follows in the order of the alphabet. */
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

/** '' for an empty one. Undefined where text cannot say it: a value with a comma. */
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

/** An empty map for an empty text. Undefined for what is no address: a key twice, or too many. */
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

/** The keys that say which place it is, per type: the same place has the same numbers, however they are written. */
const PLACES = new Map<string, readonly string[]>([
  ['pci', ['domain', 'bus', 'slot', 'function']],
  ['drive', ['controller', 'bus', 'target', 'unit']],
  ['virtio-serial', ['controller', 'bus', 'port']],
  ['ccid', ['controller', 'slot']],
  ['usb', ['bus', 'port']],
  ['dimm', ['slot']],
]);

/** Equal for equal places; undefined where the map does not say one. */
export function placeOf(address: DeviceAddress | undefined): string | undefined {
  if (address === undefined || Object.keys(address).length === 0) return undefined;
  const { type = 'drive' } = address;
  const keys =
    PLACES.get(type) ??
    Object.keys(address)
      .filter((key) => key !== 'type')
      .sort();
  return [type, ...keys.map((key) => `${key}=${numberText(address[key])}`)].join(' ');
}

function numberText(text = '0'): string {
  return /^(?:0x[0-9a-f]{1,8}|[0-9]{1,10})$/i.test(text) ? String(Number(text)) : text;
}
