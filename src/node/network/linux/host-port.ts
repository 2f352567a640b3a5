/** The interface between the networks of guests and the host's side of the default network. */
import type { IpAddress } from '#lib/ip-address.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

/** The port of one guest on the bridge of the host. */
export interface GuestBridgePort {
  /** The host's end of the veth pair. Begins with `portPrefix` of the plan. */
  readonly hostInterface: string;
  /** The MAC address that the guest or its pod may use. */
  readonly macAddress: string;
  readonly addresses: readonly IpAddress[];
}

export interface HostSide {
  readonly plan: NetworkPlan;
  /** Creates or repairs bridges, rules, forwarding and DNS. */
  ensure(): Promise<void>;
  /**
   * Allows exactly this MAC and these addresses (ARP and neighbour messages included) on the port. Before it, everything
   * from the port is dropped.
   */
  allow(port: GuestBridgePort): Promise<void>;
  /** Removes the permission. Does nothing if there is none. */
  forget(hostInterface: string): Promise<void>;
  /**
   * Connects the bridge with those of other hosts; without peers, disconnects it. `local` is the address of this host
   * between hosts, and the peers are those of the other ones. Must be called after `ensure`, which repairs it from then on.
   */
  setPeers(local: string, peers: readonly string[]): Promise<void>;
}
