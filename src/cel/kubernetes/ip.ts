/** Kubernetes' `ip()` library: addresses and their properties. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { quoteCost, quoteForMessage } from '#cel/extensions/go-quote.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import type { IpAddress } from '#lib/ip-address.ts';
import { IpAddressError, formatIpAddress, parseIpAddress } from '#lib/ip-address.ts';
import type { Library, Overload } from '#cel/library.ts';
import { BOOL, INT, STRING, opaque } from '#cel/type.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

export const IP = opaque('net.IP');

/** Units for parsing an address, in addition to its length. */
export const PARSE_COST = 50;
/** Units for formatting an address. */
export const FORMAT_COST = 50;

/** Returns the message of Go for an invalid address. */
export function goParseMessage({ text, problem, at }: IpAddressError): string {
  return `ParseAddr(${quoteForMessage(text)}): ${problem}${at === '' ? '' : ` (at ${quoteForMessage(at)})`}`;
}

export class CelIp extends CelOpaque {
  override readonly type = IP;
  readonly address: IpAddress;

  constructor(address: IpAddress) {
    super();
    this.address = address;
  }

  override equals(other: CelOpaque): boolean {
    if (!(other instanceof CelIp)) return false;
    return other.address.family === this.address.family && other.address.value === this.address.value;
  }
}

export const ipLibrary: Library = {
  types: [IP],
  functions: {
    family: [method<[CelIp]>('ip_family', [IP], INT, (_budget, ip) => BigInt(ip.address.family))],
    ip: [func<[string]>('string_to_ip', [STRING], IP, parseIp)],
    'ip.isCanonical': [func<[string]>('ip_is_canonical', [STRING], BOOL, isCanonical)],
    isGlobalUnicast: [predicateOverload('ip_is_global_unicast', isGlobalUnicast)],
    isIP: [func<[string]>('is_ip', [STRING], BOOL, (budget, text) => parseIp(budget, text) instanceof CelIp)],
    isLinkLocalMulticast: [
      predicateOverload('ip_is_link_local_multicast', ({ family, value }) =>
        family === 4 ? value >> 8n === 0xe00000n : ((value >> 112n) & 0xff0fn) === 0xff02n,
      ),
    ],
    isLinkLocalUnicast: [predicateOverload('ip_is_link_local_unicast', isLinkLocalUnicast)],
    isLoopback: [predicateOverload('ip_is_loopback', isLoopback)],
    isUnspecified: [predicateOverload('ip_is_unspecified', ({ value }) => value === 0n)],
    string: [
      func<[CelIp]>('ip_to_string', [IP], STRING, (budget, ip) => {
        budget.charge(FORMAT_COST);
        return formatIpAddress(ip.address);
      }),
    ],
  },
};

function predicateOverload(id: string, predicate: (address: IpAddress) => boolean): Overload {
  return method<[CelIp]>(id, [IP], BOOL, (_budget, ip) => predicate(ip.address));
}

/** Charges for parsing the text. */
export function parseIp(budget: Budget, text: string): CelIp | CelFault {
  budget.charge(PARSE_COST + bytesCost(text.length));
  try {
    const { family, value, zone } = parseIpAddress(text);
    if (zone !== '') {
      budget.charge(quoteCost(text));
      return new CelFault(`IP address ${quoteForMessage(text)} with zone value is not allowed`);
    }
    if (isIPv4Mapped({ family, value }))
      return new CelFault(`IPv4-mapped IPv6 address ${quoteForMessage(text)} is not allowed`);
    return new CelIp({ family, value });
  } catch (error) {
    if (!(error instanceof IpAddressError)) throw error;
    budget.charge(THROW_COST + quoteCost(text));
    return new CelFault(
      `IP Address ${quoteForMessage(text)} parse error during conversion from string: ${goParseMessage(error)}`,
    );
  }
}

export function isIPv4Mapped({ family, value }: IpAddress): boolean {
  return family === 6 && value >> 32n === 0xffffn;
}

function isCanonical(budget: Budget, text: string): boolean | CelFault {
  const ip = parseIp(budget, text);
  if (ip instanceof CelFault) return ip;
  budget.charge(FORMAT_COST + bytesCost(text.length));
  return formatIpAddress(ip.address) === text;
}

function isLoopback({ family, value }: IpAddress): boolean {
  return family === 4 ? value >> 24n === 127n : value === 1n;
}

function isLinkLocalUnicast({ family, value }: IpAddress): boolean {
  return family === 4 ? value >> 16n === 0xa9fen : value >> 118n === 0xfe80n >> 6n;
}

function isMulticast({ family, value }: IpAddress): boolean {
  return family === 4 ? value >> 28n === 0xen : value >> 120n === 0xffn;
}

function isGlobalUnicast(address: IpAddress): boolean {
  const { family, value } = address;
  if (value === 0n || (family === 4 && value === 0xffffffffn)) return false;
  return !isLoopback(address) && !isMulticast(address) && !isLinkLocalUnicast(address);
}
