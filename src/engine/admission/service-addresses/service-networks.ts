/** The ranges from which addresses and node ports of Services are allocated, as values. */
import {
  addressAt,
  bitsOf,
  formatIpAddress,
  formatIpNetwork,
  type IpNetwork,
  networkContains,
  parseIpAddress,
  parseIpNetwork,
} from '#lib/ip-address.ts';
import type { ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';

export type IpFamily = NonNullable<ServiceSpec['ipFamilies']>[number];

/** The subnets of a server that is not configured otherwise. */
export const DEFAULT_SERVICE_SUBNETS: readonly string[] = ['10.96.0.0/16', 'fd00:10:96::/112'];

interface PortRange {
  readonly first: number;
  readonly last: number;
}

const NODE_PORT_RANGE: PortRange = { first: 30_000, last: 32_767 };

/** One or two subnets of different families. The first is the default family. */
export interface ServiceNetworks {
  readonly subnets: readonly IpNetwork[];
  readonly nodePorts: PortRange;
}

const MIN_HOST_BITS = 2;

/** Throws an error that says which subnet is wrong and why. */
export function parseServiceNetworks(subnets: readonly string[]): ServiceNetworks {
  const parsed = subnets.map(parseIpNetwork);
  for (const { address, prefix } of parsed) {
    if (bitsOf(address.family) - prefix < MIN_HOST_BITS) {
      const text = formatIpNetwork({ address, prefix });
      throw new Error(
        `Cannot use service subnet ${text}: it has fewer than 4 addresses; use one such as ${DEFAULT_SERVICE_SUBNETS[0]}`,
      );
    }
  }
  if (parsed.length < 1 || parsed.length > 2 || parsed[0]?.address.family === parsed[1]?.address.family) {
    throw new Error(
      `Cannot use service subnets ${JSON.stringify(subnets.join(','))}: expected one subnet, or one of IPv4 and one of IPv6, such as ${DEFAULT_SERVICE_SUBNETS.join(',')}`,
    );
  }
  return { subnets: parsed, nodePorts: NODE_PORT_RANGE };
}

export const familyName = ({ address }: IpNetwork): IpFamily => (address.family === 4 ? 'IPv4' : 'IPv6');

/** Returns undefined if the family has no subnet. */
export function subnetOf({ subnets }: ServiceNetworks, family: IpFamily): IpNetwork | undefined {
  return subnets.find((subnet) => familyName(subnet) === family);
}

/** Reports whether Services may have an address: it is in the subnet, and neither its first nor an IPv4 broadcast address. */
export function isServiceAddress(subnet: IpNetwork, ip: string): boolean {
  const { family, value } = parseIpAddress(ip);
  if (!networkContains(subnet, { family, value })) return false;
  const index = value - subnet.address.value;
  return index > 0n && index <= lastIndexOf(subnet);
}

export function canonicalIp(ip: string): string {
  return formatIpAddress(parseIpAddress(ip));
}

function lastIndexOf({ address, prefix }: IpNetwork): bigint {
  const size = 1n << BigInt(bitsOf(address.family) - prefix);
  return address.family === 4 ? size - 2n : size - 1n;
}

/** Addresses of larger subnets are allocated only on request. */
const MAX_ADDRESSES = 1n << 20n;

/** Chooses the index of a range at which a search for a free one starts. */
export type PickIndex = (count: number) => number;

/**
 * Returns a free address, or undefined if there is none. As in Kubernetes, the lower part of the subnet is used last, so
 * that addresses that users choose there are free.
 */
export function findFreeAddress(
  subnet: IpNetwork,
  isTaken: (ip: string) => boolean,
  pick: PickIndex,
): string | undefined {
  const last = lastIndexOf(subnet);
  const count = Number(last < MAX_ADDRESSES ? last : MAX_ADDRESSES);
  const reserved = Math.min(Math.max(16, Math.floor(count / 16)), 256);
  const at = (offset: number) => formatIpAddress(addressAt(subnet, BigInt(offset) + 1n));
  const found = findFree({ count, reserved: count > reserved ? reserved : 0 }, (offset) => !isTaken(at(offset)), pick);
  return found === undefined ? undefined : at(found);
}

/** Like findFreeAddress, for node ports. */
export function findFreePort(
  { first, last }: PortRange,
  isTaken: (port: number) => boolean,
  pick: PickIndex,
): number | undefined {
  const count = last - first + 1;
  const reserved = Math.min(Math.max(16, Math.floor(count / 32)), 128);
  const range = { count, reserved: count > reserved ? reserved : 0 };
  const found = findFree(range, (offset) => !isTaken(first + offset), pick);
  return found === undefined ? undefined : first + found;
}

interface OffsetRange {
  readonly count: number;
  /** The number of offsets at the beginning that are used last. */
  readonly reserved: number;
}

function findFree(
  { count, reserved }: OffsetRange,
  isFree: (offset: number) => boolean,
  pick: PickIndex,
): number | undefined {
  const free = (start: number, length: number): number | undefined => {
    if (length === 0) return undefined;
    const from = pick(length);
    for (let i = 0; i < length; i++) {
      const offset = start + ((from + i) % length);
      if (isFree(offset)) return offset;
    }
    return undefined;
  };
  return free(reserved, count - reserved) ?? free(0, reserved);
}
