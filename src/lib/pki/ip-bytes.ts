/** Encodes IP addresses as the bytes that certificates contain: 4 for IPv4, 16 for IPv6. */
import { isIPv4, isIPv6 } from 'node:net';
import { invariant } from '#lib/invariant.ts';

const IPV6_GROUPS = 8;

/** Returns the bytes of a valid address. Ignores a zone (`fe80::1%eth0`), because it is local to a host. */
export function ipBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  invariant(isIPv6(address), `"${address}" is an IP address`);
  const [head = '', tail] = replaceDottedTail(address.replace(/%.*$/, '')).split('::');
  const before = parseGroups(head);
  const after = tail === undefined ? [] : parseGroups(tail);
  const zeros = Array.from({ length: IPV6_GROUPS - before.length - after.length }, () => 0);
  return Buffer.from([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

/** Turns `::ffff:10.0.0.1` into `::ffff:a00:1`. */
function replaceDottedTail(address: string): string {
  return address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, ...bytes: string[]) => {
    const [a = 0, b = 0, c = 0, d = 0] = bytes.map(Number);
    return `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
  });
}

function parseGroups(text: string): number[] {
  return text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
}
