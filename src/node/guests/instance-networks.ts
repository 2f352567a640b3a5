/** Looks up the networks of an instance: the default network of guests and NetworkAttachmentDefinitions. */
import { networksOf } from '#api/devices/attached-interfaces.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS, type GuestNetwork } from '#api/network/guest-network.ts';
import { readDefinitionConfig } from '#api/network/definition-config.ts';
import { DEFINITION_MISSING, describeMissingDefinition } from '#api/network/missing-definition.ts';
import { definitionPlaces, NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { secondaryNetworksOf } from '#api/network/secondary-networks.ts';
import { podAddressesOf } from '#api/network/pod-addresses.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { errorMessage } from '#lib/error-message.ts';
import type { NetworkFacts } from '#node/definition/devices/attachment.ts';
import type { NetworkAttachment } from '#node/hardware/domain-definition.ts';
import type { PodNetworks } from '#node/network/pod-networks.ts';

interface InstanceNetworksParts {
  readonly client: Reader;
  readonly networks: {
    readonly podNetworks: Pick<PodNetworks, 'setDefaultNetwork'>;
    /** Returns the CNI configuration list of the host, as JSON, or undefined if it has none. */
    readonly hostConfig: () => Promise<string | undefined>;
    /** True for simulated guests: their pod network connects nothing, so they run without one. */
    readonly isSimulated?: boolean;
  };
}

export type NetworkLookup =
  /** `facts` are undefined if this node has no network for pods: interfaces are in user mode then. */
  | { readonly is: 'ready'; readonly facts: NetworkFacts | undefined }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

const UNAVAILABLE = 'NetworkUnavailable';
const INVALID = 'NetworkDefinitionInvalid';
/** The reasons of a lookup that waits. */
export const NETWORK_WAITS: readonly string[] = [UNAVAILABLE, INVALID, DEFINITION_MISSING];

/**
 * Returns the networks of an instance whose guest is not in a network namespace: only the pod network exists there. Without
 * this, the name of a definition would be that of a bridge of the host.
 */
export function findUserModeNetworks({ spec }: VirtualMachineInstance): NetworkLookup {
  const [secondary] = secondaryNetworksOf(spec);
  if (secondary === undefined) return { is: 'ready', facts: undefined };
  const message = `network "${secondary.name}" needs a network namespace for the guest, which this node cannot provide; the agent must run as root, with a default network or a CNI configuration in /etc/cni/net.d`;
  return { is: 'waiting', reason: UNAVAILABLE, message };
}

export class InstanceNetworks {
  readonly #parts: InstanceNetworksParts;

  constructor(parts: InstanceNetworksParts) {
    this.#parts = parts;
  }

  /** Prepares the default network on this host, if there is one. Call it when the agent starts; `resolve` repeats it. */
  async prepareDefault(signal: AbortSignal): Promise<Stored<GuestNetwork> | undefined> {
    const { client, networks } = this.#parts;
    const network = await getIfExists(client, GUEST_NETWORKS, { name: DEFAULT_NETWORK }, { signal });
    await networks.podNetworks.setDefaultNetwork(network);
    return network;
  }

  async resolve(vmi: Stored<VirtualMachineInstance>, pod: Stored<Pod>, signal: AbortSignal): Promise<NetworkLookup> {
    const podNetwork = await this.#findPodNetwork(signal);
    if ('reason' in podNetwork) return podNetwork;
    const podNetworks = networksOf(vmi.spec).filter(({ multus }) => multus === undefined).length;
    const needsPodNetwork = podNetworks > 0;
    // A namespace has one pod network. Earlier versions allowed several, and gave each a network of its own.
    if (podNetworks > 1 && secondaryNetworksOf(vmi.spec).length === 0) return { is: 'ready', facts: undefined };
    const isSimulated = this.#parts.networks.isSimulated === true && secondaryNetworksOf(vmi.spec).length > 0;
    if (needsPodNetwork && podNetwork.found === undefined && !isSimulated) return findUserModeNetworks(vmi);
    const definitions = new Map<string, string>();
    for (const { name, networkName } of secondaryNetworksOf(vmi.spec)) {
      const found = await this.#findDefinition(networkName, vmi.metadata.namespace ?? '', signal);
      if ('reason' in found) return found;
      definitions.set(name, found.config);
    }
    const { namespace = '', name, uid } = pod.metadata;
    return {
      is: 'ready',
      facts: {
        pod: { namespace, name, uid },
        podNetwork: podNetwork.found,
        addresses: podAddressesOf(pod),
        definitions,
      },
    };
  }

  async #findPodNetwork(
    signal: AbortSignal,
  ): Promise<
    { readonly found: NetworkAttachment['network'] | undefined } | Extract<NetworkLookup, { reason: string }>
  > {
    try {
      if ((await this.prepareDefault(signal)) !== undefined) return { found: { type: 'default' } };
    } catch (error) {
      signal.throwIfAborted();
      return { is: 'waiting', reason: UNAVAILABLE, message: `the default network: ${errorMessage(error)}` };
    }
    const config = await this.#parts.networks.hostConfig();
    return { found: config === undefined ? undefined : { type: 'cni', config } };
  }

  async #findDefinition(
    networkName: string,
    namespace: string,
    signal: AbortSignal,
  ): Promise<{ readonly config: string } | Extract<NetworkLookup, { reason: string }>> {
    for (const place of definitionPlaces(networkName, namespace) ?? []) {
      const found = await getIfExists(this.#parts.client, NETWORK_ATTACHMENT_DEFINITIONS, place, { signal });
      if (found === undefined) continue;
      const read = readDefinitionConfig(found.spec?.config ?? '', place.name);
      if ('config' in read) return read;
      const message = `NetworkAttachmentDefinition "${place.namespace}/${place.name}": ${read.problem}`;
      return { is: 'waiting', reason: INVALID, message };
    }
    return { is: 'waiting', reason: DEFINITION_MISSING, message: describeMissingDefinition(networkName, namespace) };
  }
}
