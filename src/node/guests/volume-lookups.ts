/** Reads the objects that the volumes of a guest refer to, and tells which guests no longer use their volumes. */
import type { Reader } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import { CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, SECRETS } from '#kube/core-kinds.ts';
import type { Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { VolumeLookups } from '#node/volumes/volumes-port.ts';

export function volumeLookups(
  namespace: string | undefined,
  client: Reader,
  signal: AbortSignal,
  token?: VolumeLookups['token'],
): VolumeLookups {
  return {
    claim: (name) => getIfExists(client, PERSISTENT_VOLUME_CLAIMS, { namespace, name }, { signal }),
    volume: (name) => getIfExists(client, PERSISTENT_VOLUMES, { name }, { signal }),
    secret: (name) => getIfExists(client, SECRETS, { namespace, name }, { signal }),
    configMap: (name) => getIfExists(client, CONFIG_MAPS, { namespace, name }, { signal }),
    ...(token && { token }),
  };
}

/** Returns a function that reports whether a domain of this node has ended. */
export function hasEndedIn(hypervisor: Pick<Hypervisor, 'get'>): (domainId: string) => boolean {
  return (id) => hypervisor.get(id)?.current.state === 'ended';
}
