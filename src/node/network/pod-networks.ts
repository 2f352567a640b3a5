/**
 * The port to the networks of guests. `linux/` implements it with network namespaces, CNI plugins and nftables, `fake/`
 * simulates it. Everything is keyed by the id of the domain, because a pod of ours has one guest.
 *
 *   (absent) ──attach──► active ◄──activate── silent ◄──attach isSilent── (absent)
 *                           └──────silence──────►┘
 *   active, silent ──detach──► (absent)
 *
 * A silent guest has everything that an active one has (MAC, addresses, rules), but nothing leaves or enters its
 * namespace: of two nodes with the same guest, one is silent at any time. Networks outlive this process, as guests do.
 * Every call may be repeated after a kill -9 at any point, and does nothing if its work is done. Calls for one domain
 * must come one at a time.
 */
import type { GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import type { DomainNetwork, NetworkAttachment } from '#node/hardware/domain-definition.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';

export interface NetworkRequest {
  /** The id of the domain. */
  readonly id: string;
  readonly network: DomainNetwork;
  /** The owner of the tap devices. */
  readonly user: ProcessUser | undefined;
  readonly interfaces: readonly TapRequest[];
}

export interface TapRequest {
  /** The name of the tap device in the namespace of the guest. */
  readonly tap: string;
  /** Queues of the guest's interface; absent for one queue. */
  readonly queues?: number;
  /** The MAC address of the guest. */
  readonly macAddress: string;
  readonly attachment: NetworkAttachment;
}

export interface PodNetwork {
  /** The path of the network namespace, such as /run/netns/…. */
  readonly namespace: string;
  readonly interfaces: readonly {
    readonly podInterface: string;
    /** The addresses of the pod, without prefix lengths. */
    readonly addresses: readonly string[];
    readonly mtu: number;
  }[];
}

/** A network could not be attached; worth a retry unless `permanent`. The message is for the user. */
export class PodNetworkError extends Error {
  override readonly name = 'PodNetworkError';
  readonly permanent: boolean;

  constructor(message: string, options: { cause?: unknown; permanent?: boolean } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.permanent = options.permanent ?? false;
  }
}

export interface PodNetworks {
  /** Finds what earlier processes attached. Must be called once, before any other method. */
  adopt(): Promise<void>;
  /**
   * Sets the default network; undefined if there is none. Creates what it needs on this host (bridge, rules, DNS), and
   * repairs it from then on. Rejects if the network cannot be used here, for example because it overlaps with a route
   * of the host.
   */
  setDefaultNetwork(network: Stored<GuestNetwork> | undefined): Promise<void>;
  /**
   * Connects the default network with the same network of other hosts. `local` is the address of this host, and the
   * peers are those of the others; without peers, the network ends at this host. May be called before
   * `setDefaultNetwork`. Absent if the networks cannot be connected.
   */
  setPeers?(local: string, peers: readonly string[]): Promise<void>;
  /**
   * Connects a guest that is about to start. Completes what an earlier call left incomplete; a failure leaves nothing
   * behind.
   */
  attach(
    request: NetworkRequest,
    options: { readonly isSilent: boolean; readonly signal?: AbortSignal | undefined },
  ): Promise<PodNetwork>;
  /** Connects a further interface of a guest that has a namespace. */
  plug(id: string, tap: TapRequest): Promise<void>;
  /** Disconnects one interface. */
  unplug(id: string, podInterface: string): Promise<void>;
  /** Connects a silent guest and announces its addresses. */
  activate(id: string): Promise<void>;
  /** From the moment when it resolves, nothing leaves or enters. Connections are not reset. */
  silence(id: string): Promise<void>;
  /** Removes the namespace and everything else of the guest. */
  detach(id: string): Promise<void>;
  /** Returns undefined if the guest has no namespace. */
  get(id: string): PodNetwork | undefined;
  /** The ids of all domains that have something on this node, whether complete or not. */
  list(): readonly string[];
  /** Releases all resources of this process; the networks stay. */
  close(): Promise<void>;
}
