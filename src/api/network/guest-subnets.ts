/**
 * The subnets of a GuestNetwork: which are allowed, and which of their addresses guests can have. The first addresses of
 * a subnet are not for guests: the network itself, the gateway, and the others for hosts. The CEL rules of the kind
 * (guest-network.ts) are the same. Pure.
 */
import {
  addressAt,
  bitsOf,
  formatIpNetwork,
  IpAddressError,
  networkContains,
  parseIpNetwork,
  type IpAddress,
  type IpNetwork,
} from '#lib/ip-address.ts';

/** The allowed prefix lengths. */
export const PREFIX_RANGES: Readonly<Record<4 | 6, { readonly shortest: number; readonly longest: number }>> = {
  4: { shortest: 8, longest: 28 },
  6: { shortest: 48, longest: 120 },
};

/** Networks whose addresses mean something else. */
export const UNUSABLE_NETWORKS: readonly string[] = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '224.0.0.0/3',
  '::/8',
  'fe80::/10',
  'ff00::/8',
];

/** The first addresses of a subnet that guests do not get; in a small subnet a quarter of it. */
const RESERVED = 16n;

export function describePrefixRange(family: 4 | 6): string {
  const { shortest, longest } = PREFIX_RANGES[family];
  return `a prefix length between /${shortest} and /${longest}`;
}

/** Returns the subnets, or a sentence that says which of them is wrong and why. */
export function parseGuestSubnets(texts: readonly string[]): readonly IpNetwork[] | string {
  if (texts.length === 0) return 'at least one subnet is required, such as 10.244.0.0/16';
  const subnets: IpNetwork[] = [];
  for (const text of texts) {
    const subnet = parseSubnet(text);
    if (typeof subnet === 'string') return subnet;
    const same = subnets.find(({ address }) => address.family === subnet.address.family);
    if (same !== undefined) {
      return `${formatIpNetwork(same)} and ${formatIpNetwork(subnet)} are both IPv${subnet.address.family}; give at most one subnet of IPv4 and one of IPv6`;
    }
    subnets.push(subnet);
  }
  return subnets;
}

function parseSubnet(text: string): IpNetwork | string {
  let subnet: IpNetwork;
  try {
    subnet = parseIpNetwork(text);
  } catch (error) {
    if (!(error instanceof IpAddressError)) throw error;
    return `"${text}" is not a subnet: ${error.problem}; write it like 10.244.0.0/16 or fd00:10:244::/64`;
  }
  const { family } = subnet.address;
  const { shortest, longest } = PREFIX_RANGES[family];
  if (subnet.prefix < shortest || subnet.prefix > longest) {
    return `subnet ${text} needs ${describePrefixRange(family)}`;
  }
  const unusable = UNUSABLE_NETWORKS.find((other) => networkContains(parseIpNetwork(other), subnet.address));
  return unusable === undefined ? subnet : `subnet ${text} is in ${unusable}, which is reserved; choose another one`;
}

/** Returns the subnets of a GuestNetwork, IPv4 first. The API server has validated them. */
export function subnetsOf({ spec }: { readonly spec: { readonly subnets: readonly string[] } }): readonly IpNetwork[] {
  const subnets = parseGuestSubnets(spec.subnets);
  return typeof subnets === 'string' ? [] : subnets.toSorted((a, b) => a.address.family - b.address.family);
}

/** The range of indexes of the addresses that guests can have. */
interface GuestRange {
  readonly first: bigint;
  readonly count: bigint;
}

export function guestRangeOf({ address: { family }, prefix }: IpNetwork): GuestRange {
  const size = 1n << BigInt(bitsOf(family) - prefix);
  const first = size / 4n < RESERVED ? size / 4n : RESERVED;
  const broadcast = family === 4 ? 1n : 0n;
  return { first, count: size - first - broadcast };
}

/** Returns the host number of an address: its index in its subnet. */
export function hostNumberOf(subnet: IpNetwork, { value }: IpAddress): bigint {
  return value - subnet.address.value;
}

/** Reports whether a guest can have the address of this index. */
export function isGuestIndex(subnet: IpNetwork, index: bigint): boolean {
  const { first, count } = guestRangeOf(subnet);
  return index >= first && index < first + count;
}

/** Returns the first and the last address that guests can have. */
export function guestBoundsOf(subnet: IpNetwork): readonly [IpAddress, IpAddress] {
  const { first, count } = guestRangeOf(subnet);
  return [addressAt(subnet, first), addressAt(subnet, first + count - 1n)];
}
