/**
 * The rules of the bridge family: what guests may send into the bridge of their network. Pure: builds the text for nft.
 *
 * A port of a guest is known by the beginning of its name. The sets hold the permissions, keyed by the port, so that a
 * guest that comes or goes changes elements and no rule; a port without elements may send nothing. A frame is checked
 * before the bridge learns its source address.
 *
 * IPv6: addresses of fe80::/10 serve neighbour discovery only, and nobody may use that of the gateway. Router
 * advertisements and redirects count only with such a source, so guests could not send them even without their rule.
 */
import { bitsOf, formatIpAddress, type IpAddress } from '#lib/ip-address.ts';
import type { GuestBridgePort } from '#node/network/linux/host-port.ts';
import { buildTunnelRules } from '#node/network/linux/host/tunnel.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

/** Returns the link-local address that a device with this MAC address gives itself (modified EUI-64). */
function linkLocalOf(macAddress: string): IpAddress {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0] = macAddress.split(':').map((octet) => Number.parseInt(octet, 16));
  const value = [a ^ 2, b, c, 0xff, 0xfe, d, e, f].reduce((sum, octet) => (sum << 8n) | BigInt(octet), 0n);
  return { family: 6, value: (0xfe80n << 112n) | value };
}

/** The sets with the permissions of ports. */
export const PORT_SETS = ['macs', 'addresses4', 'addresses6', 'targets6'] as const;
type PortSet = (typeof PORT_SETS)[number];

/** Builds what replaces all rules of the bridge family in one transaction, and keeps the permissions. */
export function buildBridgeRules(plan: NetworkPlan): string {
  const { table, portPrefix, gatewayMac } = plan;
  const gatewayLinkLocal = linkLocalOf(gatewayMac);
  const tunnel = buildTunnelRules(plan, gatewayLinkLocal);
  return `table bridge ${table} {
  set revision { type ifname; }
  set macs { type ifname . ether_addr; }
  set addresses4 { type ifname . ipv4_addr; }
  set addresses6 { type ifname . ipv6_addr; }
  set targets6 { typeof iifname . @th,64,128; }
  chain prerouting { type filter hook prerouting priority -300; policy accept; }
  chain input { type filter hook input priority -300; policy accept; }
  chain guest { }
  chain guest_arp { }
  chain guest_ip4 { }
  chain guest_ip6 { }
  chain guest_neighbours { }
${tunnel.chains}}
flush chain bridge ${table} prerouting
flush chain bridge ${table} input
flush chain bridge ${table} guest
flush chain bridge ${table} guest_arp
flush chain bridge ${table} guest_ip4
flush chain bridge ${table} guest_ip6
flush chain bridge ${table} guest_neighbours
table bridge ${table} {
  chain prerouting {
    iifname "${portPrefix}*" jump guest
  }
  # Frames to 01:80:c2:00:00:0x reach the host without the other chain.
  chain input {
    iifname "${portPrefix}*" ether daddr & ff:ff:ff:ff:ff:f0 == 01:80:c2:00:00:00 drop
  }
  chain guest {
    iifname . ether saddr != @macs drop
    ether type ip goto guest_ip4
    ether type ip6 goto guest_ip6
    ether type arp goto guest_arp
    drop
  }
  chain guest_arp {
    arp htype != 1 drop
    arp ptype != ip drop
    arp hlen != 6 drop
    arp plen != 4 drop
    iifname . arp saddr ether != @macs drop
    iifname . arp saddr ip @addresses4 accept
    arp operation request arp saddr ip 0.0.0.0 iifname . arp daddr ip @addresses4 accept
    drop
  }
  chain guest_ip4 {
    iifname . ip saddr != @addresses4 drop
    udp sport 67 udp dport 68 drop
    accept
  }
  chain guest_ip6 {
    icmpv6 type { nd-router-advert, nd-redirect } drop
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } goto guest_neighbours
    iifname . ip6 saddr != @addresses6 drop
    udp sport 547 udp dport 546 drop
    accept
  }
  chain guest_neighbours {
    ip6 saddr ${formatIpAddress(gatewayLinkLocal)} drop
    icmpv6 type nd-neighbor-advert iifname . @th,64,128 != @targets6 drop
    iifname . ip6 saddr @addresses6 accept
    ip6 saddr fe80::/10 accept
    icmpv6 type nd-neighbor-solicit ip6 saddr :: iifname . @th,64,128 @targets6 accept
    drop
  }
}
${tunnel.rules}`;
}

/** Returns the elements of the sets that a port must have, as text. */
export function buildPortElements(port: GuestBridgePort): Readonly<Record<PortSet, readonly string[]>> {
  const name = `"${port.hostInterface}"`;
  const four = port.addresses.filter(({ family }) => family === 4);
  const six = port.addresses.filter(({ family }) => family === 6);
  return {
    macs: [`${name} . ${port.macAddress.toLowerCase()}`],
    addresses4: four.map((address) => `${name} . ${formatIpAddress(address)}`),
    addresses6: six.map((address) => `${name} . ${formatIpAddress(address)}`),
    targets6: six.map(({ value }) => `${name} . 0x${value.toString(16).padStart(bitsOf(6) / 4, '0')}`),
  };
}
