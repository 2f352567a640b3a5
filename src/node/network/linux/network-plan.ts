/**
 * Names and addresses of a guest network on a host, computed from its GuestNetwork: the same on every host and for every
 * agent of the plane. Pure.
 */
import { createHash } from 'node:crypto';
import { DEFAULT_MTU, type GuestNetwork } from '#api/network/guest-network.ts';
import type { Stored } from '#kube/meta.ts';
import { addressAt, parseIpNetwork, type IpAddress, type IpNetwork } from '#lib/ip-address.ts';

export interface NetworkPlan {
  /** Eight hexadecimal digits that no other network has; part of all names. */
  readonly key: string;
  /** The bridge that connects the guests of this host. */
  readonly bridge: string;
  /** A bridge that drops everything: the port of a silent guest is here. */
  readonly silentBridge: string;
  /**
   * The beginning of the name of the host's end of each veth pair; up to 6 characters may follow. Rules know ports of
   * guests by it, because not every kernel can match the bridge of a port.
   */
  readonly portPrefix: string;
  /** The name of our nftables tables. */
  readonly table: string;
  readonly subnets: readonly IpNetwork[];
  /** The address of the host in each subnet. */
  readonly gateways: readonly IpAddress[];
  readonly gatewayMac: string;
  readonly mtu: number;
}

const KEY_LENGTH = 8;
/** Locally administered, and the same on all hosts, so that a moved guest still knows its gateway. */
const GATEWAY_MAC = '0a:58:00:00:00:01';

export function planNetwork({ metadata, spec }: Stored<GuestNetwork>): NetworkPlan {
  const key = createHash('sha256').update(metadata.uid).digest('hex').slice(0, KEY_LENGTH);
  const subnets = spec.subnets.map(parseIpNetwork);
  return {
    key,
    bridge: `ss-${key}`,
    silentBridge: `ssq-${key}`,
    portPrefix: `s${key}`,
    table: `selfsame_${key}`,
    subnets,
    gateways: subnets.map((subnet) => addressAt(subnet, 1n)),
    gatewayMac: GATEWAY_MAC,
    mtu: spec.mtu ?? DEFAULT_MTU,
  };
}
