/** Chooses subnets for the guests of a new plane by the routes of this host. */
import { formatIpNetwork, parseIpNetwork } from '#lib/ip-address.ts';
import { chooseSubnets } from '#node/network/linux/host/free-subnets.ts';
import { runOnHost } from '#node/network/linux/host/host-commands.ts';
import { readRoutes } from '#node/network/linux/host/host-routes.ts';

/** `seed`: a text that no other plane has; the IPv6 subnet is derived from it. `taken`: subnets of Services. */
export async function chooseFreeSubnets(seed: string, taken: readonly string[]): Promise<readonly string[]> {
  const services = taken.map((text) => ({ destination: parseIpNetwork(text), device: 'services' }));
  return chooseSubnets([...(await readRoutes(runOnHost())), ...services], seed).map(formatIpNetwork);
}
