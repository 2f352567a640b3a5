/**
 * The commands that prepare and change the namespace of a guest, as one script for a shell that runs in it: few processes,
 * because the network of a guest is part of the time of its start. All values are checked before (interface-plan.ts).
 * Pure.
 */
import { bitsOf, formatIpAddress, type IpAddress } from '#lib/ip-address.ts';
import type { ProcessUser } from '#node/hardware/guest-user.ts';
import { servedDevice, servesV6 } from '#node/network/linux/dhcp/dnsmasq-config.ts';
import {
  POD_GATEWAY_LINK_LOCAL,
  POD_GATEWAY_MAC,
  type GuestAddress,
  type InterfacePlan,
} from '#node/network/linux/interface-plan.ts';
import { ANNOUNCER } from '#node/network/linux/rules/bridge-rules.ts';

/** A path below /proc/sys/net, and its value. */
type Sysctl = readonly [path: string, value: number];

interface PodScript {
  readonly sysctls?: readonly Sysctl[];
  /** Commands for `ip -batch`. */
  readonly ip?: readonly string[];
  /** Sysctls of devices that the commands have made. */
  readonly laterSysctls?: readonly Sysctl[];
  readonly nft?: string;
}

/** The other end of ANNOUNCER. */
const ANNOUNCED = 'announced';

/** Rules come before devices, so that no device is ever up without them. */
export function podScript({ sysctls = [], ip = [], laterSysctls = [], nft = '' }: PodScript): string {
  const set = ([path, value]: Sysctl) => `set_net ${path} ${value}`;
  return [
    'set -e',
    // A kernel without IPv6 or without br_netfilter does not have all of them.
    'set_net() { if [ -e "/proc/sys/net/$1" ]; then echo "$2" >"/proc/sys/net/$1"; fi; }',
    ...sysctls.map(set),
    ...(nft === '' ? [] : ["nft -f - <<'END'", nft.trimEnd(), 'END']),
    ...(ip.length === 0 ? [] : ["ip -batch - <<'END'", ...ip, 'END']),
    ...laterSysctls.map(set),
    '',
  ].join('\n');
}

/** Settings of a whole namespace. Must be set before an interface is made, which copies the defaults. */
export function namespaceSysctls({ hasV6, forwards }: { hasV6: boolean; forwards: boolean }): Sysctl[] {
  const forwarding = forwards ? 1 : 0;
  return [
    ['ipv4/ip_forward', forwarding], // First, because it resets others.
    ['ipv6/conf/all/forwarding', forwarding],
    ['ipv6/conf/default/forwarding', forwarding],
    ['ipv6/conf/default/disable_ipv6', hasV6 ? 0 : 1],
    // Nothing may be sent that was not asked for: the addresses may be in use on the source of a migration.
    ['ipv6/conf/all/accept_dad', 0],
    ['ipv6/conf/default/accept_dad', 0],
    ['ipv6/conf/default/dad_transmits', 0],
    ['ipv6/conf/default/addr_gen_mode', 1],
    ['ipv6/conf/default/accept_ra', 0],
    ['ipv6/conf/default/autoconf', 0],
    ['ipv6/conf/default/router_solicitations', 0],
    ['ipv4/conf/all/arp_notify', 0],
    // Each interface answers for its own addresses only.
    ['ipv4/conf/all/arp_ignore', 1],
    ['ipv4/conf/all/arp_announce', 2],
    ['ipv4/conf/all/rp_filter', 0],
    ['ipv4/conf/default/rp_filter', 0],
    ['ipv4/conf/all/send_redirects', 0],
    ['ipv4/conf/default/send_redirects', 0],
    ['ipv4/conf/all/accept_redirects', 0],
    ['ipv4/conf/default/accept_redirects', 0],
    // A connection goes on in the middle after a migration.
    ['netfilter/nf_conntrack_tcp_loose', 1],
    ['netfilter/nf_conntrack_tcp_be_liberal', 1],
    ['bridge/bridge-nf-call-iptables', 0],
    ['bridge/bridge-nf-call-ip6tables', 0],
    ['bridge/bridge-nf-call-arptables', 0],
  ];
}

/** Creates the tap and, for the bridge binding, the bridge. Its addresses follow later (serveCommands). */
export function tapCommands(
  { tap, queues, mtu, binding, podBridge }: Pick<InterfacePlan, 'tap' | 'queues' | 'mtu' | 'binding' | 'podBridge'>,
  user: ProcessUser | undefined,
): string[] {
  const owner = user === undefined ? '' : ` user ${user.uid}`;
  const isBridged = binding === 'bridge';
  const address = isBridged ? '' : ` address ${POD_GATEWAY_MAC}`;
  return [
    'link set dev lo up',
    `tuntap add dev ${tap} mode tap${owner}${queues > 1 ? ' multi_queue' : ''}`,
    ...(isBridged
      ? [
          `link add name ${podBridge} mtu ${mtu} address ${POD_GATEWAY_MAC} type bridge stp_state 0 mcast_snooping 0`,
          `link set dev ${podBridge} up`,
        ]
      : []),
    `link set dev ${tap} mtu ${mtu}${address}${isBridged ? ` master ${podBridge}` : ''} up`,
  ];
}

/** Gives the side of the guest its addresses: those of its gateway, and for DHCP. */
export function serveCommands(plan: InterfacePlan): string[] {
  const { addresses, tap, guestMac } = plan;
  const v6 = servesV6(plan) && addresses.some(({ pod }) => pod.family === 6);
  const device = servedDevice(plan);
  const linkLocal = v6 ? [`address add ${POD_GATEWAY_LINK_LOCAL}/64 dev ${device} nodad`] : [];
  const gateways = addresses.flatMap((address): string[] => {
    const { guest, gateway } = address;
    if (guest.address.family === 6 && !v6) return [];
    if (plan.binding === 'masquerade') {
      // The guest need not be asked for its MAC address, so that a moved one is reached at once.
      const neighbour = `neighbour replace ${formatIpAddress(guest.address)} lladdr ${guestMac} dev ${tap} nud permanent`;
      return [
        `address add ${formatIpAddress(gateway ?? serverOf(address))}/${guest.prefix} dev ${tap}${nodad(address)}`,
        neighbour,
      ];
    }
    const server = gateway ?? serverOf(address);
    if (server.family === 6)
      return [`address add ${formatIpAddress(server)}/${guest.prefix} dev ${device} nodad noprefixroute`];
    return [
      `address add ${formatIpAddress(server)}/${bitsOf(4)} dev ${device}`,
      `route add ${formatIpAddress(guest.address)}/${bitsOf(4)} dev ${device}`,
    ];
  });
  return [...linkLocal, ...gateways];
}

/** Makes the interface of the pod a port of the bridge of the guest; its addresses belong to the guest. */
export function bridgeCommands({ podInterface, podBridge, podMac }: InterfacePlan): string[] {
  return [`address flush dev ${podInterface}`, `link set dev ${podInterface} address ${podMac} master ${podBridge}`];
}

/** Removes the devices of one interface, except for that of the plugins. */
export function removeCommands({
  tap,
  binding,
  podBridge,
}: Pick<InterfacePlan, 'tap' | 'binding' | 'podBridge'>): string[] {
  return [`link delete dev ${tap}`, ...(binding === 'bridge' ? [`link delete dev ${podBridge}`] : [])];
}

/**
 * Sends a gratuitous ARP and unsolicited neighbour advertisements: the kernel does, when the MAC address of an interface
 * with these settings is set. A guest with the bridge binding has its own MAC address, so a port is made for a moment that
 * has it, too; it receives nothing, and the bridge learns nothing from it.
 */
export function announceScript(plan: InterfacePlan): string {
  const { podInterface, podMac, guestMac, podBridge, addresses, mtu } = plan;
  const notify = (device: string): Sysctl[] => [
    [`ipv4/conf/${device}/arp_notify`, 1],
    [`ipv6/conf/${device}/ndisc_notify`, 1],
  ];
  if (plan.binding === 'masquerade') {
    return podScript({ sysctls: notify(podInterface), ip: [`link set dev ${podInterface} address ${podMac}`] });
  }
  if (addresses.length === 0) return '';
  return [
    // What an announcement has left that was cut off.
    `ip link delete dev ${ANNOUNCER} 2>/dev/null || true`,
    podScript({
      sysctls: [['ipv6/conf/default/disable_ipv6', 0]],
      ip: [
        `link add name ${ANNOUNCER} type veth peer name ${ANNOUNCED}`,
        `link set dev ${ANNOUNCER} mtu ${mtu} master ${podBridge}`,
        `link set dev ${ANNOUNCER} type bridge_slave learning off flood off mcast_flood off bcast_flood off`,
        `link set dev ${ANNOUNCER} up`,
        `link set dev ${ANNOUNCED} mtu ${mtu} address ${guestMac} up`,
        ...addresses.map(
          (address) =>
            `address add ${formatIpAddress(address.pod)}/${bitsOf(address.pod.family)} dev ${ANNOUNCED}${nodad(address)}`,
        ),
      ],
      laterSysctls: notify(ANNOUNCED),
    }),
    `ip link set dev ${ANNOUNCED} address ${guestMac}`,
    `ip link delete dev ${ANNOUNCER}`,
    '',
  ].join('\n');
}

const nodad = ({ pod }: GuestAddress) => (pod.family === 6 ? ' nodad' : '');

/** Returns an address of the guest's network for a DHCP server in a network without a router. Only the guest sees it. */
function serverOf({ guest: { address } }: GuestAddress): IpAddress {
  return { family: address.family, value: address.value ^ 1n };
}
