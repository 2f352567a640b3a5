/**
 * The rules of the host for the guests of one network: NAT, and who reaches whom. Pure: builds the text for nft.
 *
 *   from a guest   to the gateway: DNS, echo, neighbour discovery; to other guests; to the outside, with NAT;
 *                  to no other address of the host, and to no link-local address
 *   to a guest     from guests and from the host itself; from others only replies, and what a Service translated
 *
 * `services` (new connections from others to guests) and `node_ports` (new connections from guests to addresses of the
 * host) are for the rules of Services; a replacement of the rules keeps their content.
 *
 * Between guests, nothing is dropped for the state of a connection: after a live migration, it is unknown here. If
 * br_netfilter is on, frames between guests pass these chains with the bridge as both interfaces. To the outside,
 * invalid packets are dropped, because they would leave without NAT.
 */
import { formatIpAddress, formatIpNetwork } from '#lib/ip-address.ts';
import { buildPeerRules } from '#node/network/linux/host/tunnel.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

/** Builds what replaces the rules of the host in one transaction. */
export function buildHostRules(plan: NetworkPlan): string {
  const { table, bridge, silentBridge, portPrefix } = plan;
  const subnets = plan.subnets.map((subnet) => ({ ip: subnet.address.family === 4 ? 'ip' : 'ip6', subnet }));
  const gateways = plan.gateways.map((address) => ({
    ip: address.family === 4 ? 'ip' : 'ip6',
    echo: address.family === 4 ? 'icmp' : 'icmpv6',
    gateway: formatIpAddress(address),
  }));
  const peers = buildPeerRules(plan);
  const each = <T>(items: readonly T[], line: (item: T) => string) =>
    items.map((item) => `\n    ${line(item)}`).join('');
  return `table inet ${table} {
  set revision { type ifname; }
${peers.sets}  chain services { }
  chain node_ports { }
  chain prerouting { type filter hook prerouting priority mangle; policy accept; }
  chain input { type filter hook input priority filter - 10; policy accept; }
  chain forward { type filter hook forward priority filter - 10; policy accept; }
  chain output { type filter hook output priority filter - 10; policy accept; }
  chain postrouting { type nat hook postrouting priority srcnat; policy accept; }
  chain guests_to_host { }
  chain guests_to_outside { }
  chain others_to_guests { }
}
flush chain inet ${table} prerouting
flush chain inet ${table} input
flush chain inet ${table} forward
flush chain inet ${table} output
flush chain inet ${table} postrouting
flush chain inet ${table} guests_to_host
flush chain inet ${table} guests_to_outside
flush chain inet ${table} others_to_guests
table inet ${table} {
  # Before any translation of addresses, so that a published port of the host is not a way around.
  chain prerouting {
    iifname "${portPrefix}*" drop
    iifname "${silentBridge}" drop
    iifname != "${bridge}" accept
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    ip daddr { 127.0.0.0/8, 169.254.0.0/16 } drop
    ip6 daddr fe80::/10 drop
    ct state established,related accept${each(gateways, ({ ip, gateway }) => `${ip} daddr ${gateway} accept`)}
    fib daddr type local jump node_ports
    fib daddr type local drop
  }
  chain input {
${peers.rules}    iifname "${bridge}" goto guests_to_host${each(
    gateways,
    ({ ip, gateway }) => `iifname != "lo" ${ip} daddr ${gateway} drop`,
  )}
  }
  chain guests_to_host {
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    ct state established,related accept${each(
      gateways,
      ({ ip, gateway }) => `${ip} daddr ${gateway} meta l4proto { tcp, udp } th dport 53 accept`,
    )}${each(gateways, ({ ip, echo, gateway }) => `${ip} daddr ${gateway} ${echo} type echo-request accept`)}
    drop
  }
  chain forward {
    iifname "${silentBridge}" drop
    oifname "${silentBridge}" drop
    iifname "${bridge}" oifname "${bridge}" accept
    iifname "${bridge}" jump guests_to_outside
    oifname "${bridge}" jump others_to_guests
  }
  chain guests_to_outside {${each(subnets, ({ ip, subnet }) => `${ip} saddr != ${formatIpNetwork(subnet)} drop`)}
    ip daddr { 127.0.0.0/8, 169.254.0.0/16 } drop
    ip6 daddr fe80::/10 drop
    ct state invalid drop
  }
  chain others_to_guests {
    ct state established,related accept
    jump services
    ct status dnat accept
    drop
  }
  # Guests must not learn another way to an address that a Service translates.
  chain output {
    oifname "${silentBridge}" drop
    oifname "${bridge}" icmp type redirect drop
    oifname "${bridge}" icmpv6 type nd-redirect drop
  }
  chain postrouting {${each(
    subnets,
    ({ ip, subnet }) =>
      `oifname != "${bridge}" ${ip} saddr ${formatIpNetwork(subnet)} ${ip} daddr != ${formatIpNetwork(subnet)} masquerade`,
  )}
  }
}
`;
}
