/** Creates the GuestNetwork `default` when the plane starts for the first time. An existing one is never changed. */
import { buildGuestNetwork, DEFAULT_NETWORK, GUEST_NETWORKS } from '#api/network/guest-network.ts';
import type { Client } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { isApiError } from '#kube/api-error.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Log } from '#lib/log.ts';

/** The subnets themselves, or a function that chooses them when they are needed. */
export type GuestNetworkOptions =
  | { readonly subnets: readonly string[] }
  | { chooseSubnets(): Promise<readonly string[]> };

export async function ensureGuestNetwork(
  client: Pick<Client, 'get' | 'create'>,
  options: GuestNetworkOptions,
  { log }: { readonly log: Log },
): Promise<void> {
  const present = await getIfExists(client, GUEST_NETWORKS, { name: DEFAULT_NETWORK });
  if (present !== undefined) {
    const { subnets } = present.spec;
    if ('subnets' in options && !deepEqual(subnets, options.subnets)) {
      const fields = { subnets, ignored: options.subnets };
      log.warn(
        fields,
        'GuestNetwork "default" keeps its subnets: guests have addresses there; the new ones are ignored',
      );
    }
    return;
  }
  const subnets = 'subnets' in options ? options.subnets : await options.chooseSubnets();
  await client.create(GUEST_NETWORKS, buildGuestNetwork(subnets)).catch((error: unknown) => {
    if (!isApiError(error, 'AlreadyExists')) throw error;
  });
}
