/**
 * The rules of a namespace whose guest is on its network directly: its tap and the interface of the pod are ports of one
 * bridge. The bridge itself has addresses, because DHCP and router advertisements need them; they reach the guest only.
 * Who may use which address on the network is decided by the host and by the plugins. Pure.
 */
import { POD_GATEWAY_LINK_LOCAL, POD_GATEWAY_MAC, type InterfacePlan } from '#node/network/linux/interface-plan.ts';
import { defineTable, ruleTableOf } from '#node/network/linux/rules/rule-text.ts';

/** The port that sends announcements for the guest (announceScript); it exists for a moment. */
export const ANNOUNCER = 'announcer';

/** The solicited-node multicast address of POD_GATEWAY_LINK_LOCAL. */
const GATEWAY_SOLICITED = 'ff02::1:ff5a:1';

export function bridgeRules(plan: InterfacePlan): string {
  const { tap, podInterface, addresses, gatewayMac } = plan;
  const servesV4 = addresses.some(({ pod }) => pod.family === 4);
  const servesV6 = gatewayMac !== undefined && addresses.some(({ pod }) => pod.family === 6);
  return defineTable('bridge', ruleTableOf(podInterface), {
    ...(servesV6 && {
      // Router advertisements name the MAC address of the bridge; the router is behind it.
      router: [
        'type filter hook prerouting priority dstnat; policy accept;',
        `iifname "${tap}" ether daddr ${POD_GATEWAY_MAC} ip6 daddr != { fe80::/10, ff00::/8 } ether daddr set ${gatewayMac}`,
      ],
    }),
    forward: [
      'type filter hook forward priority filter; policy accept;',
      `iifname "${tap}" oifname "${podInterface}" jump from_guest`,
      `iifname "${podInterface}" oifname "${tap}" jump to_guest`,
      `iifname "${ANNOUNCER}" oifname "${podInterface}" accept`,
      `iifname { "${tap}", "${podInterface}", "${ANNOUNCER}" } drop`,
    ],
    from_guest: [
      `ether saddr != ${plan.guestMac} drop`,
      ...(servesV4 ? ['ether type ip udp dport 67 drop'] : []),
      ...(servesV6 ? ['ether type ip6 udp dport 547 drop', 'icmpv6 type nd-router-solicit drop'] : []),
      'accept',
    ],
    to_guest: [
      ...(servesV4 ? ['ether type ip udp sport 67 drop'] : []),
      ...(servesV6 ? ['ether type ip6 udp sport 547 drop', 'icmpv6 type nd-router-advert drop'] : []),
      'accept',
    ],
    input: [
      'type filter hook input priority filter; policy accept;',
      `iifname "${tap}" jump guest_input`,
      `iifname { "${podInterface}", "${ANNOUNCER}" } drop`,
    ],
    guest_input: [
      `ether saddr != ${plan.guestMac} drop`,
      ...(servesV4 ? ['ether type ip udp dport 67 accept'] : []),
      ...(servesV6
        ? [
            'ether type ip6 udp dport 547 accept',
            `ether type ip6 ip6 daddr { ${POD_GATEWAY_LINK_LOCAL}, ${GATEWAY_SOLICITED}, ff02::2 } icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit, echo-request } accept`,
          ]
        : []),
      'drop',
    ],
    output: [
      'type filter hook output priority filter; policy accept;',
      `oifname { "${podInterface}", "${ANNOUNCER}" } drop`,
    ],
  });
}
