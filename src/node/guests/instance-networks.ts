/** Looks up the networks of an instance: the default network of guests and NetworkAttachmentDefinitions. */
import { networksOf } from '#api/devices/attached-interfaces.ts';
import { DEFAULT_NETWORK, GUEST_NETWORKS, type GuestNetwork } from '#api/network/guest-network.ts';
import { definitionPlaces, NETWORK_ATTACHMENT_DEFINITIONS } from '#api/network/network-attachment-definition.ts';
import { podAddressesOf } from '#api/network/pod-addresses.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Reader } from '#client/client.ts';
import { getIfExists } from '#client/get-if-exists.ts';
import type { Pod } from '#kube/core-kinds.ts';
import { isRecord, type Stored } from '#kube/meta.ts';
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
  };
}

export type NetworkLookup =
  /** `facts` are undefined if this node has no network for pods: interfaces are in user mode then. */
  | { readonly is: 'ready'; readonly facts: NetworkFacts | undefined }
  | { readonly is: 'waiting' | 'failed'; readonly reason: string; readonly message: string };

const UNAVAILABLE = 'NetworkUnavailable';
const MAX_CONFIG_LENGTH = 64 * 1024;

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
    const wanted = networksOf(vmi.spec);
    const podNetwork = await this.#findPodNetwork(signal);
    if ('reason' in podNetwork) return podNetwork;
    const needsPodNetwork = wanted.some(({ multus }) => multus === undefined);
    if (needsPodNetwork && podNetwork.found === undefined) return { is: 'ready', facts: undefined };
    const definitions = new Map<string, string>();
    for (const { name, multus } of wanted) {
      if (multus === undefined) continue;
      const found = await this.#findDefinition(multus.networkName, vmi.metadata.namespace ?? '', signal);
      if ('reason' in found) return found;
      definitions.set(name, found.config);
    }
    const { namespace = '', name, uid } = pod.metadata;
    return {
      is: 'ready',
      facts: {
        pod: { namespace, name, uid },
        podNetwork: podNetwork.found ?? { type: 'default' },
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
    const failure = (message: string) => ({ is: 'waiting', reason: UNAVAILABLE, message }) as const;
    const places = definitionPlaces(networkName, namespace);
    if (places === undefined) {
      return failure(`network "${networkName}": VMs can only use definitions of their own namespace and of "default"`);
    }
    for (const place of places) {
      const found = await getIfExists(this.#parts.client, NETWORK_ATTACHMENT_DEFINITIONS, place, { signal });
      if (found === undefined) continue;
      const config = readConfig(found.spec?.config ?? '', place.name);
      if (config !== undefined) return { config };
      return failure(
        `NetworkAttachmentDefinition "${place.namespace}/${place.name}": spec.config is not a CNI configuration`,
      );
    }
    const names = places.map((place) => `"${place.namespace}/${place.name}"`).join(' or ');
    return failure(`there is no NetworkAttachmentDefinition ${names}; create it with a CNI configuration`);
  }
}

/** Returns a configuration list as JSON, also for a single plugin; undefined if it is neither. */
function readConfig(text: string, name: string): string | undefined {
  if (text.length > MAX_CONFIG_LENGTH) return undefined;
  try {
    const config: unknown = JSON.parse(text);
    if (!isRecord(config)) return undefined;
    if (Array.isArray(config['plugins'])) return JSON.stringify({ name, ...config });
    if (typeof config['type'] !== 'string') return undefined;
    const { cniVersion = '1.0.0', name: ownName = name, ...plugin } = config;
    return JSON.stringify({ cniVersion, name: ownName, plugins: [plugin] });
  } catch {
    return undefined;
  }
}
