/** Subnets for guests that do not overlap with the routes of the host. Pure. */
import { createHash } from 'node:crypto';
import { formatIpNetwork, networksOverlap, parseIpNetwork, type IpNetwork } from '#lib/ip-address.ts';
import type { HostRoute } from '#node/network/linux/host/host-routes.ts';

const PREFERRED = '10.244.0.0/16';
const ATTEMPTS_6 = 16;

/**
 * Returns a free pair of subnets. The one of IPv6 is a unique local /64 derived from the seed, so that the same seed
 * gives the same subnet. Throws if nothing is free.
 */
export function chooseSubnets(routes: readonly HostRoute[], seed: string): readonly [IpNetwork, IpNetwork] {
  const isFree = (subnet: IpNetwork) => findOverlap(subnet, routes) === undefined;
  const four = candidates4().find(isFree);
  if (four === undefined) {
    throw new Error(
      'Cannot choose a subnet for guests: the routes of this host cover 10.0.0.0/8, 172.16.0.0/12 and 192.168.0.0/16; ' +
        'create the GuestNetwork "default" with a free one, such as 100.96.0.0/16',
    );
  }
  const six = Array.from({ length: ATTEMPTS_6 }, (_, attempt) => uniqueLocal(`${seed} ${attempt}`)).find(isFree);
  if (six === undefined) throw new Error('Cannot choose a subnet for guests: the routes of this host cover fd00::/8');
  return [four, six];
}

/** Returns networks of private addresses: those that others use rarely come first. */
function candidates4(): IpNetwork[] {
  const numbers = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  return [
    PREFERRED,
    ...[...numbers(245, 254), ...numbers(128, 243)].map((n) => `10.${n}.0.0/16`),
    ...numbers(1, 127).map((n) => `10.${n}.0.0/16`),
    ...numbers(18, 31)
      .reverse()
      .map((n) => `172.${n}.0.0/16`),
    ...numbers(2, 254)
      .reverse()
      .map((n) => `192.168.${n}.0/24`),
  ].map(parseIpNetwork);
}

function uniqueLocal(seed: string): IpNetwork {
  const digits = createHash('sha256').update(seed).digest('hex').slice(0, 10);
  return parseIpNetwork(`fd${digits.slice(0, 2)}:${digits.slice(2, 6)}:${digits.slice(6)}::/64`);
}

/** Throws if a subnet overlaps with a route of the host that does not belong to the bridge of the network. */
export function checkSubnets(subnets: readonly IpNetwork[], routes: readonly HostRoute[], bridge: string): void {
  for (const subnet of subnets) {
    const route = findOverlap(
      subnet,
      routes.filter(({ device }) => device !== bridge),
    );
    if (route === undefined) continue;
    throw new Error(
      `Cannot use the subnet ${formatIpNetwork(subnet)} for guests: it overlaps with the route ` +
        `${formatIpNetwork(route.destination)} of this host (device ${route.device}); choose a subnet without a route, ` +
        `such as ${suggestSubnet(subnet, routes)}`,
    );
  }
}

function suggestSubnet({ address: { family } }: IpNetwork, routes: readonly HostRoute[]): string {
  try {
    const [four, six] = chooseSubnets(routes, 'suggestion');
    return formatIpNetwork(family === 4 ? four : six);
  } catch {
    return family === 4 ? '100.96.0.0/16' : 'fd00:5e1f::/64';
  }
}

/** Returns a route of the host into the subnet, except default routes. VPNs write them as two halves of all addresses. */
function findOverlap(subnet: IpNetwork, routes: readonly HostRoute[]): HostRoute | undefined {
  return routes.find(({ destination }) => destination.prefix > 1 && networksOverlap(subnet, destination));
}
