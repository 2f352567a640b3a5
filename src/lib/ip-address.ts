/** IP addresses and networks as numbers. Parses and formats them as Go's netip does. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly value: bigint;
}

/** All addresses with the same first `prefix` bits as `address`, whose other bits are zero. */
export interface IpNetwork {
  readonly address: IpAddress;
  readonly prefix: number;
}

/** A text that is not an address. */
export class IpAddressError extends Error {
  override name = 'IpAddressError';
  readonly text: string;
  readonly problem: string;
  /** The rest of the text at which the problem was found; '' if it concerns all of it. */
  readonly at: string;

  constructor(text: string, problem: string, at = '') {
    super(`${JSON.stringify(text)} is not a valid IP address or network: ${problem}`);
    this.text = text;
    this.problem = problem;
    this.at = at;
  }
}

export const bitsOf = (family: 4 | 6): number => (family === 4 ? 32 : 128);

/** Throws IpAddressError. `zone` is the text after a percent sign. */
export function parseIpAddress(text: string): IpAddress & { zone: string } {
  const kind = /[.:%]/.exec(text)?.[0];
  if (kind === '.') return { family: 4, value: parseIPv4(text, text), zone: '' };
  if (kind === ':') return parseIPv6(text);
  throw fault(text, kind === '%' ? 'missing IPv6 address' : 'unable to parse IP');
}

function fault(text: string, problem: string, at?: string): IpAddressError {
  return new IpAddressError(text, problem, at);
}

/** Parses four octets. `whole` is the text for the error message. */
function parseIPv4(whole: string, text: string): bigint {
  let value = 0n;
  let octet = '';
  let dots = 0;
  for (let i = 0; i < text.length; i++) {
    const sign = text.charAt(i);
    if (sign >= '0' && sign <= '9') {
      if (octet === '0') throw fault(whole, 'IPv4 field has octet with leading zero');
      octet += sign;
      if (Number(octet) > 255) throw fault(whole, 'IPv4 field has value >255');
    } else if (sign === '.') {
      if (octet === '' || i === text.length - 1) {
        throw fault(whole, 'IPv4 field must have at least one digit', text.slice(i));
      }
      if (dots === 3) throw fault(whole, 'IPv4 address too long');
      value = (value << 8n) | BigInt(octet);
      octet = '';
      dots++;
    } else {
      throw fault(whole, 'unexpected character', text.slice(i));
    }
  }
  if (dots < 3) throw fault(whole, 'IPv4 address too short');
  return (value << 8n) | BigInt(octet);
}

function parseIPv6(whole: string): IpAddress & { zone: string } {
  const percent = whole.indexOf('%');
  const zone = percent < 0 ? '' : whole.slice(percent + 1);
  if (percent >= 0 && zone === '') throw fault(whole, 'zone must be a non-empty string');
  const { groups, gap } = parseGroups(whole, percent < 0 ? whole : whole.slice(0, percent));
  if (groups.length < 8 && gap < 0) throw fault(whole, 'address string too short');
  if (groups.length === 8 && gap >= 0) throw fault(whole, 'the :: must expand to at least one field of zeros');
  if (gap >= 0) groups.splice(gap, 0, ...Array.from<number>({ length: 8 - groups.length }).fill(0));
  return { family: 6, value: groups.reduce((value, group) => (value << 16n) | BigInt(group), 0n), zone };
}

/** `gap` is the position of the double colon, or -1. */
function parseGroups(whole: string, text: string): { groups: number[]; gap: number } {
  const groups: number[] = [];
  let gap = -1;
  let rest = text;
  if (rest.startsWith('::')) {
    gap = 0;
    rest = rest.slice(2);
  }
  while (rest !== '' && groups.length < 8) {
    const [digits = ''] = /^[0-9a-fA-F]{0,5}/.exec(rest) ?? [];
    if (digits.length > 4) throw fault(whole, 'each group must have 4 or fewer digits', rest);
    if (digits === '') throw fault(whole, 'each colon-separated field must have at least one digit', rest);
    if (rest.charAt(digits.length) === '.') {
      parseTrailingIPv4(whole, rest, groups, gap);
      return { groups, gap };
    }
    groups.push(Number.parseInt(digits, 16));
    rest = rest.slice(digits.length);
    if (rest === '') break;
    if (!rest.startsWith(':')) throw fault(whole, 'unexpected character, want colon', rest);
    if (rest === ':') throw fault(whole, 'colon must be followed by more characters', rest);
    rest = rest.slice(1);
    if (rest.startsWith(':')) {
      if (gap >= 0) throw fault(whole, 'multiple :: in address', rest);
      gap = groups.length;
      rest = rest.slice(1);
    }
  }
  if (rest !== '') throw fault(whole, 'trailing garbage after address', rest);
  return { groups, gap };
}

function parseTrailingIPv4(whole: string, rest: string, groups: number[], gap: number): void {
  if (gap < 0 && groups.length !== 6) {
    throw fault(whole, 'embedded IPv4 address must replace the final 2 fields of the address', rest);
  }
  if (groups.length > 6) {
    throw fault(whole, 'too many hex fields to fit an embedded IPv4 at the end of the address', rest);
  }
  const four = Number(parseIPv4(whole, rest));
  groups.push(four >>> 16, four & 0xffff);
}

/** Formats the canonical form of RFC 5952. */
export function formatIpAddress({ family, value }: IpAddress): string {
  if (family === 4) return [24n, 16n, 8n, 0n].map((shift) => (value >> shift) & 0xffn).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => Number((value >> BigInt(112 - 16 * i)) & 0xffffn));
  let start = -1;
  let length = 1; // A single zero group is not compressed.
  for (let i = 0; i < 8; i++) {
    let end = i;
    while (end < 8 && groups[end] === 0) end++;
    if (end - i > length) [start, length] = [i, end - i];
  }
  const hex = groups.map((group) => group.toString(16));
  if (start < 0) return hex.join(':');
  return `${hex.slice(0, start).join(':')}::${hex.slice(start + length).join(':')}`;
}

/** Parses a network such as 10.244.0.0/16; throws IpAddressError if it is invalid or has bits after its prefix. */
export function parseIpNetwork(text: string): IpNetwork {
  const { address, prefix } = parseInterfaceAddress(text);
  const network = networkOf(address, prefix);
  if (network.address.value !== address.value) {
    throw fault(text, `the network is ${formatIpNetwork(network)}`);
  }
  return network;
}

/** Parses an address with the prefix length of its network, such as 10.244.0.5/16; throws IpAddressError. */
export function parseInterfaceAddress(text: string): { readonly address: IpAddress; readonly prefix: number } {
  const [, head = '', bits = ''] = /^([^/]*)\/(\d{1,3})$/.exec(text) ?? [];
  if (bits === '') throw fault(text, 'a prefix length such as /24 is missing');
  const { family, value, zone } = parseIpAddress(head);
  if (zone !== '') throw fault(text, 'zones are not allowed');
  const prefix = Number(bits);
  if (prefix > bitsOf(family)) throw fault(text, `the prefix length is at most ${bitsOf(family)}`);
  return { address: { family, value }, prefix };
}

export function formatIpNetwork({ address, prefix }: IpNetwork): string {
  return `${formatIpAddress(address)}/${prefix}`;
}

/** Returns the network of an address. */
export function networkOf({ family, value }: IpAddress, prefix: number): IpNetwork {
  const shift = BigInt(bitsOf(family) - prefix);
  return { address: { family, value: (value >> shift) << shift }, prefix };
}

export function networkContains({ address, prefix }: IpNetwork, { family, value }: IpAddress): boolean {
  if (family !== address.family) return false;
  const shift = BigInt(bitsOf(family) - prefix);
  return value >> shift === address.value >> shift;
}

export function networksOverlap(a: IpNetwork, b: IpNetwork): boolean {
  return networkContains(a, b.address) || networkContains(b, a.address);
}

/** Returns the address at an index of a network; 0 is its first address. */
export function addressAt({ address: { family, value } }: IpNetwork, index: bigint): IpAddress {
  return { family, value: value + index };
}
