/** Kubernetes' `cidr()` library: networks and their addresses. */
import type { Budget } from '#cel/limits/budget.ts';
import { bytesCost } from '#cel/limits/budget.ts';
import { func, method } from '#cel/extensions/overload.ts';
import { quoteCost, quoteForMessage } from '#cel/extensions/go-quote.ts';
import { THROW_COST } from '#cel/extensions/throw-cost.ts';
import { CelIp, FORMAT_COST, goParseMessage, IP, isIPv4Mapped, PARSE_COST, parseIp } from '#cel/kubernetes/ip.ts';
import type { IpAddress } from '#lib/ip-address.ts';
import { IpAddressError, bitsOf, formatIpAddress, parseIpAddress } from '#lib/ip-address.ts';
import type { Library } from '#cel/library.ts';
import { BOOL, INT, STRING, opaque } from '#cel/type.ts';
import { CelFault, CelOpaque } from '#cel/value.ts';

const CIDR = opaque('net.CIDR');

/** Units for masking an address. */
const MASK_COST = 10;

/** A network. The address is as written, not masked. */
class CelCidr extends CelOpaque {
  override readonly type = CIDR;
  readonly address: IpAddress;
  readonly prefix: number;

  constructor(address: IpAddress, prefix: number) {
    super();
    this.address = address;
    this.prefix = prefix;
  }

  override equals(other: CelOpaque): boolean {
    if (!(other instanceof CelCidr) || other.prefix !== this.prefix) return false;
    return other.address.family === this.address.family && other.address.value === this.address.value;
  }

  contains(address: IpAddress): boolean {
    if (address.family !== this.address.family) return false;
    const shift = BigInt(bitsOf(address.family) - this.prefix);
    return address.value >> shift === this.address.value >> shift;
  }

  masked(): CelCidr {
    const { family, value } = this.address;
    const shift = BigInt(bitsOf(family) - this.prefix);
    return new CelCidr({ family, value: (value >> shift) << shift }, this.prefix);
  }
}

export const cidrLibrary: Library = {
  types: [CIDR],
  functions: {
    cidr: [func<[string]>('string_to_cidr', [STRING], CIDR, parseCidr)],
    containsCIDR: [
      method<[CelCidr, string]>('cidr_contains_cidr_string', [CIDR, STRING], BOOL, (budget, cidr, text) => {
        const other = parseCidr(budget, text);
        return other instanceof CelFault ? other : containsCidr(cidr, other);
      }),
      method<[CelCidr, CelCidr]>('cidr_contains_cidr', [CIDR, CIDR], BOOL, (_budget, cidr, other) =>
        containsCidr(cidr, other),
      ),
    ],
    containsIP: [
      method<[CelCidr, string]>('cidr_contains_ip_string', [CIDR, STRING], BOOL, (budget, cidr, text) => {
        const ip = parseIp(budget, text);
        return ip instanceof CelFault ? ip : cidr.contains(ip.address);
      }),
      method<[CelCidr, CelIp]>('cidr_contains_ip_ip', [CIDR, IP], BOOL, (_budget, cidr, ip) =>
        cidr.contains(ip.address),
      ),
    ],
    ip: [method<[CelCidr]>('cidr_ip', [CIDR], IP, (_budget, cidr) => new CelIp(cidr.address))],
    isCIDR: [func<[string]>('is_cidr', [STRING], BOOL, (budget, text) => parseCidr(budget, text) instanceof CelCidr)],
    masked: [
      method<[CelCidr]>('cidr_masked', [CIDR], CIDR, (budget, cidr) => {
        budget.charge(MASK_COST);
        return cidr.masked();
      }),
    ],
    prefixLength: [method<[CelCidr]>('cidr_prefix_length', [CIDR], INT, (_budget, cidr) => BigInt(cidr.prefix))],
    string: [
      func<[CelCidr]>('cidr_to_string', [CIDR], STRING, (budget, cidr) => {
        budget.charge(FORMAT_COST);
        return `${formatIpAddress(cidr.address)}/${cidr.prefix}`;
      }),
    ],
  },
};

function containsCidr(outer: CelCidr, inner: CelCidr): boolean {
  return outer.prefix <= inner.prefix && outer.contains(inner.address);
}

const CONVERSION = 'network address parse error during conversion from string: ';

/** Kubernetes repeats the prefix of the message in all faults but one. */
function parseCidr(budget: Budget, text: string): CelCidr | CelFault {
  budget.charge(PARSE_COST + bytesCost(text.length));
  const cidr = parsePrefix(text);
  if (typeof cidr === 'string') {
    budget.charge(THROW_COST + quoteCost(text));
    return new CelFault(`${CONVERSION}${CONVERSION}netip.ParsePrefix(${quoteForMessage(text)}): ${cidr}`);
  }
  if (isIPv4Mapped(cidr.address)) {
    return new CelFault(`${CONVERSION}IPv4-mapped IPv6 address ${quoteForMessage(text)} is not allowed`);
  }
  return cidr;
}

/** Returns the error message as a string if the text is invalid. */
function parsePrefix(text: string): CelCidr | string {
  const slash = text.lastIndexOf('/');
  if (slash < 0) return "no '/'";
  try {
    const { family, value, zone } = parseIpAddress(text.slice(0, slash));
    if (zone !== '') return 'IPv6 zones cannot be present in a prefix';
    const bits = text.slice(slash + 1);
    if (!/^(?:0|[1-9][0-9]{0,17})$/.test(bits)) return `bad bits after slash: ${quoteForMessage(bits)}`;
    if (Number(bits) > bitsOf(family)) return 'prefix length out of range';
    return new CelCidr({ family, value }, Number(bits));
  } catch (error) {
    if (error instanceof IpAddressError) return goParseMessage(error);
    throw error;
  }
}
