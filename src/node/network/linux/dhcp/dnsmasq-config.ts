/**
 * The configuration of the DHCP server of one namespace. It serves one guest on each interface, with the same address for
 * ever, sends router advertisements, and has no DNS. Pure.
 */
import { bitsOf, formatIpAddress, type IpAddress } from '#lib/ip-address.ts';
import type { GuestAddress, InterfacePlan } from '#node/network/linux/interface-plan.ts';

interface DnsmasqOptions {
  readonly pidFile: string;
  readonly hostname: string;
  readonly searchDomains: readonly string[];
}

const LABEL = /^[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/;
const DOMAIN = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?$/;

/** Returns undefined if no interface needs a server: if their plugins give no addresses, the network has one. */
export function dnsmasqConfig(plans: readonly InterfacePlan[], options: DnsmasqOptions): string | undefined {
  const served = plans.filter(({ addresses }) => addresses.length > 0);
  if (served.length === 0) return undefined;
  return [
    'port=0',
    'conf-dir=',
    'bind-interfaces',
    'except-interface=lo',
    'leasefile-ro',
    'no-ping',
    'dhcp-authoritative',
    'quiet-dhcp',
    'quiet-dhcp6',
    'quiet-ra',
    'user=nobody',
    'group=nogroup',
    `pid-file=${options.pidFile}`,
    ...served.flatMap((plan) => interfaceLines(plan, options)),
    '',
  ].join('\n');
}

function interfaceLines(plan: InterfacePlan, { hostname, searchDomains }: DnsmasqOptions): string[] {
  const device = servedDevice(plan);
  const tag = plan.podInterface.replaceAll(/[^A-Za-z0-9]/g, '_');
  const v4 = plan.addresses.find(({ pod }) => pod.family === 4);
  const v6 = servesV6(plan) ? plan.addresses.find(({ pod }) => pod.family === 6) : undefined;
  const name = LABEL.test(hostname) ? [hostname] : [];
  const domains = searchDomains.filter((domain) => DOMAIN.test(domain)).join();
  const option = (text: string, value: string) => `dhcp-option=tag:${tag},${text}${value === '' ? '' : `,${value}`}`;
  const addresses = [...(v4 ? [text(v4)] : []), ...(v6 ? [`[${text(v6)}]`] : [])];
  return [
    `interface=${device}`,
    `dhcp-host=${[plan.guestMac, 'id:*', `set:${tag}`, ...addresses, ...name, 'infinite'].join()}`,
    ...(v4
      ? [
          `dhcp-range=set:${tag},${text(v4)},static,${netmask(v4.guest.prefix)},infinite`,
          // Without a value, an option is not sent; otherwise dnsmasq would offer itself as the router.
          option('option:router', v4.gateway ? formatIpAddress(v4.gateway) : ''),
          option('option:mtu', String(plan.mtu)),
          option('option:dns-server', list(plan.nameservers, 4)),
          ...(domains === '' ? [] : [option('option:domain-search', domains)]),
        ]
      : []),
    ...(v6
      ? [
          'enable-ra',
          `dhcp-range=set:${tag},${text(v6)},static,${v6.guest.prefix},infinite`,
          `ra-param=${device},mtu:${plan.mtu},high,60,9000`,
          option('option6:dns-server', list(plan.nameservers, 6)),
          ...(domains === '' ? [] : [option('option6:domain-search', domains)]),
        ]
      : []),
  ];
}

/** Reports whether the guest gets its IPv6 address from us. With the bridge binding only if we know its router. */
export function servesV6({ binding, gatewayMac }: InterfacePlan): boolean {
  return binding === 'masquerade' || gatewayMac !== undefined;
}

/** Returns the device on which the guest asks. */
export function servedDevice({ binding, tap, podBridge }: InterfacePlan): string {
  return binding === 'masquerade' ? tap : podBridge;
}

const text = ({ guest }: GuestAddress) => formatIpAddress(guest.address);

function list(addresses: readonly IpAddress[], family: 4 | 6): string {
  const texts = addresses.filter((address) => address.family === family).map(formatIpAddress);
  return texts.map((address) => (family === 6 ? `[${address}]` : address)).join();
}

function netmask(prefix: number): string {
  const bits = BigInt(bitsOf(4));
  return formatIpAddress({ family: 4, value: ((1n << BigInt(prefix)) - 1n) << (bits - BigInt(prefix)) });
}
