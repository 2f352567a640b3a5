/** Chooses subnets for the guests of a new plane by the routes of this host. */
import { formatIpNetwork } from '#lib/ip-address.ts';
import { chooseSubnets } from '#node/network/linux/host/free-subnets.ts';
import { runOnHost } from '#node/network/linux/host/host-commands.ts';
import { readRoutes } from '#node/network/linux/host/host-routes.ts';

/** `seed`: a text that no other plane has; the IPv6 subnet is derived from it. */
export async function chooseFreeSubnets(seed: string): Promise<readonly string[]> {
  return chooseSubnets(await readRoutes(runOnHost()), seed).map(formatIpNetwork);
}
