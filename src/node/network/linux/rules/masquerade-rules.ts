/**
 * The rules of a namespace whose guest is behind masquerade: everything for the pod goes to the guest, everything from the
 * guest leaves with the address of the pod. One to one, ports unchanged, so that a connection needs no state of the
 * namespace that it comes from. Pure.
 *
 *   from_guest     only the guest's own MAC and addresses, before anything else
 *   moved_in/out   packets that connection tracking calls invalid, such as the FIN of a connection that was opened before
 *                  a migration: translated without state
 *   to_guest,
 *   from_pod       all others: translated by connection tracking, with the ICMP errors that belong to them
 *   input, output  the namespace itself answers to nobody except for neighbour discovery, DHCP and pings of its gateway
 *   leaving        whatever happens, nothing leaves with another address than that of the pod
 */
import { formatIpAddress } from '#lib/ip-address.ts';
import { POD_GATEWAY_LINK_LOCAL, type GuestAddress, type InterfacePlan } from '#node/network/linux/interface-plan.ts';
import { family, defineTable, ruleTableOf } from '#node/network/linux/rules/rule-text.ts';

const NEIGHBOURS = 'icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert }';
const LISTENERS = 'mld-listener-report, mld-listener-done, mld2-listener-report';
/** A packet of a TCP connection that does not open it. */
const MIDSTREAM = 'tcp flags & (fin | syn | rst | ack) != syn';

export function masqueradeRules(plan: InterfacePlan): string {
  const { tap, podInterface, addresses } = plan;
  const guest = `iifname "${tap}"`;
  const network = `iifname "${podInterface}"`;
  const each = (rule: (address: GuestAddress) => string | readonly string[]) => addresses.flatMap(rule);
  return defineTable('inet', ruleTableOf(podInterface), {
    source: [
      'type filter hook prerouting priority raw; policy accept;',
      `${guest} jump from_guest`,
      `${network} jump from_network`,
    ],
    from_guest: [
      `ether saddr != ${plan.guestMac} drop`,
      'ip saddr 0.0.0.0 udp sport 68 udp dport 67 accept',
      ...each((address) => `${family(address)} saddr ${guestOf(address)} accept`),
      'ip6 saddr fe80::/10 ip6 daddr { fe80::/10, ff02::/16 } accept',
      `ip6 saddr :: icmpv6 type { nd-neighbor-solicit, nd-router-solicit, ${LISTENERS} } accept`,
      'drop',
    ],
    from_network: [
      ...each((address) => `${family(address)} daddr ${podOf(address)} accept`),
      `${NEIGHBOURS} accept`,
      'drop',
    ],
    moved_in: [
      'type filter hook prerouting priority mangle; policy accept;',
      ...each(
        (address) =>
          `${network} ${family(address)} daddr ${podOf(address)} ct state invalid ${MIDSTREAM} ${family(address)} daddr set ${guestOf(address)}`,
      ),
    ],
    to_guest: [
      'type nat hook prerouting priority dstnat; policy accept;',
      ...each((address) =>
        reachable(plan, address).map(
          (match) =>
            `${network} ${family(address)} daddr ${podOf(address)} ${match}dnat ${family(address)} to ${guestOf(address)}`,
        ),
      ),
    ],
    input: [
      'type filter hook input priority filter; policy accept;',
      `${guest} jump guest_input`,
      `${network} ${NEIGHBOURS} accept`,
      `${network} drop`,
    ],
    guest_input: [
      'udp dport { 67, 547 } accept',
      ...each((address) =>
        address.gateway ? `${family(address)} daddr ${formatIpAddress(address.gateway)} ${ping(address)} accept` : [],
      ),
      `ip6 daddr ${POD_GATEWAY_LINK_LOCAL} icmpv6 type echo-request accept`,
      `icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, ${LISTENERS} } accept`,
      'drop',
    ],
    forward: [
      'type filter hook forward priority filter; policy accept;',
      `${guest} oifname "${podInterface}" accept`,
      `${network} oifname "${tap}" accept`,
      `iifname { "${tap}", "${podInterface}" } drop`,
      `oifname { "${tap}", "${podInterface}" } drop`,
    ],
    output: [
      'type filter hook output priority filter; policy accept;',
      `oifname "${podInterface}" ${NEIGHBOURS} accept`,
      `oifname "${podInterface}" drop`,
    ],
    moved_out: [
      'type filter hook postrouting priority mangle; policy accept;',
      ...each(
        (address) =>
          `oifname "${podInterface}" ${family(address)} saddr ${guestOf(address)} ct state invalid ${MIDSTREAM} ${family(address)} saddr set ${podOf(address)}`,
      ),
    ],
    from_pod: [
      'type nat hook postrouting priority srcnat; policy accept;',
      ...each(
        (address) =>
          `oifname "${podInterface}" ${family(address)} saddr ${guestOf(address)} snat ${family(address)} to ${podOf(address)}`,
      ),
    ],
    leaving: [
      'type filter hook postrouting priority srcnat + 50; policy accept;',
      ...each((address) => `oifname "${podInterface}" ${family(address)} saddr ${podOf(address)} accept`),
      `oifname "${podInterface}" drop`,
    ],
  });
}

/**
 * Returns the matches of packets that reach the guest. With a list of ports, these are the beginnings of connections to
 * them; a packet from the middle of a connection reaches it in any case, because the guest may have opened the connection
 * before a migration.
 */
function reachable({ ports }: InterfacePlan, address: GuestAddress): string[] {
  if (ports === undefined) return [''];
  const listed = (['tcp', 'udp'] as const).flatMap((protocol) => {
    const numbers = ports.filter((entry) => entry.protocol === protocol).map(({ port }) => port);
    return numbers.length === 0
      ? []
      : [`${protocol} dport { ${[...new Set(numbers)].sort((a, b) => a - b).join(', ')} } `];
  });
  return [...listed, `${MIDSTREAM} `, `${ping(address)} `];
}

function ping(address: GuestAddress): string {
  return address.pod.family === 4 ? 'icmp type echo-request' : 'icmpv6 type echo-request';
}

const podOf = ({ pod }: GuestAddress) => formatIpAddress(pod);
const guestOf = ({ guest }: GuestAddress) => formatIpAddress(guest.address);
