/**
 * Builds the nftables table of Services as text. Pure. The path of a packet:
 *
 *   from a guest or the outside ── prerouting ─┐                         ┌─ postrouting: guest to guest: source is the gateway
 *   from the host ──────────────── output ─────┴─ services: mark, DNAT ──┤
 *                                                                        └─ otherwise unchanged
 *
 * The gateway as the source makes the answer of a guest on the same bridge come back to the host, which undoes the
 * translation, whether bridged packets pass these rules (br_netfilter) or not. Connections that exist keep their endpoint.
 */
import { createHash } from 'node:crypto';
import { SERVICE_MARK } from '#api/network/service-mark.ts';
import type { Endpoint, ServiceForward } from '#node/services/service-forwards.ts';
import {
  formatIpAddress,
  formatIpNetwork,
  networkContains,
  parseIpAddress,
  type IpAddress,
  type IpNetwork,
} from '#lib/ip-address.ts';

/** The part of a network plan that the rules of Services need. */
export interface ServiceNetwork {
  /** The key of the network, which is part of the name of the table. */
  readonly key: string;
  readonly subnets: readonly IpNetwork[];
  /** The address of the host in each subnet. */
  readonly gateways: readonly IpAddress[];
  /**
   * Addresses in the subnets that only this host has. With them, endpoints of other hosts are used: the answer must come
   * back to this host, and all hosts have the same gateway.
   */
  readonly hostAddresses?: readonly IpAddress[];
}

interface ServiceTable {
  readonly name: string;
  /** Identifies the content. */
  readonly hash: string;
  /** Replaces the table at once: `nft -f -`. */
  readonly text: string;
}

const MARK = `0x${SERVICE_MARK.toString(16)}`;
/** Before destination NAT (-100) and after connection tracking (-200). */
const REJECT_PRIORITY = -110;
/** Before the masquerade of other tables (100): the first translation of a source counts. */
const SOURCE_PRIORITY = 99;
const HASH_SEED = '0x5e1f';
const HASH_LENGTH = 16;
/** The limit of nftables is 128 bytes. */
const MAX_COMMENT = 120;

/** Reports whether an address is in a subnet of the guests and not one of a host. */
export function isGuestAddress({ subnets, gateways, hostAddresses = [] }: ServiceNetwork, ip: string): boolean {
  const { family, value } = parseIpAddress(ip);
  const ofHosts = [...gateways, ...hostAddresses];
  if (ofHosts.some((address) => address.family === family && address.value === value)) return false;
  return subnets.some((subnet) => networkContains(subnet, { family, value }));
}

export const serviceTableName = (key: string): string => `selfsame_svc_${key}`;

/** Returns the command that removes the table, also if it does not exist. */
export function removalText(key: string): string {
  const name = serviceTableName(key);
  return `add table inet ${name}\ndelete table inet ${name}\n`;
}

export function buildServiceTable(network: ServiceNetwork, forwards: readonly ServiceForward[]): ServiceTable {
  const name = serviceTableName(network.key);
  const maps = new VerdictMaps();
  const chains = new Map<string, string>();
  for (const forward of forwards) {
    maps.addAddress(forward, forward.clusterIp, targetOf(forward, forward.internal, chains));
    const external = targetOf(forward, forward.external, chains);
    for (const ip of forward.balancerIps) maps.addAddress(forward, ip, external);
    if (forward.nodePort !== undefined) maps.addNodePort(forward, forward.nodePort, external);
  }
  const body = [...maps.blocks(), ...chains.values(), ...fixedChains(), postrouting(network, forwards)].join('\n');
  const hash = createHash('sha256').update(body).digest('hex').slice(0, HASH_LENGTH);
  const hooks = natHooks(hash);
  return { name, hash, text: `${removalText(network.key)}table inet ${name} {\n${body}\n${hooks}\n}\n` };
}

/** Returns the name of the chain of these endpoints, which it adds if it is new; undefined if there are none. */
function targetOf(
  forward: ServiceForward,
  endpoints: readonly Endpoint[],
  chains: Map<string, string>,
): string | undefined {
  if (endpoints.length === 0) return undefined;
  const { family, protocol, hasAffinity } = forward;
  const nat = family === 4 ? 'ip' : 'ip6';
  const targets = endpoints.map(({ ip, port }, i) => `${i} : ${ip} . ${port}`).join(', ');
  const choice = hasAffinity
    ? `jhash ${nat} saddr mod ${endpoints.length} seed ${HASH_SEED}`
    : `numgen random mod ${endpoints.length}`;
  const rule = `meta l4proto ${protocol} dnat ${nat} to ${choice} map { ${targets} }`;
  const chain = `svc_${createHash('sha256').update(`${forward.name} ${rule}`).digest('hex').slice(0, HASH_LENGTH)}`;
  // Only guests: with the mark, filters would let guests reach addresses of the host that a user names as endpoints.
  const mark = endpoints.every(({ isGuest }) => isGuest) ? [`ct mark set ct mark | ${MARK}`] : [];
  chains.set(chain, block(`chain ${chain}`, [...mark, `${rule} comment "${commentOf(forward.name)}"`]));
  return chain;
}

const commentOf = (name: string): string => name.replaceAll(/[^\w./:-]/g, '?').slice(0, MAX_COMMENT);

/** The maps from addresses and node ports to chains. The first entry for a key counts. */
class VerdictMaps {
  readonly #served = new Map<string, Map<string, string>>();
  readonly #seen = new Set<string>();

  addAddress({ family, protocol, port }: ServiceForward, ip: string, chain: string | undefined): void {
    this.#add(chain === undefined ? `unserved${family}` : `addresses${family}`, `${ip} . ${protocol} . ${port}`, chain);
  }

  addNodePort({ family, protocol }: ServiceForward, nodePort: number, chain: string | undefined): void {
    const key = `${protocol} . ${nodePort}`;
    this.#add(chain === undefined ? `unserved_ports${family}` : `ports${family}`, key, chain);
  }

  #add(map: string, key: string, chain: string | undefined): void {
    const family = map.slice(-1);
    if (this.#seen.has(`${family} ${key}`)) return;
    this.#seen.add(`${family} ${key}`);
    const elements = this.#served.get(map) ?? new Map<string, string>();
    this.#served.set(map, elements.set(key, chain ?? 'reject_new'));
  }

  /** Returns all maps in a fixed order, including empty ones, which rules refer to. */
  blocks(): string[] {
    return ([4, 6] as const).flatMap((family) => {
      const address = `type ipv${family}_addr . inet_proto . inet_service : verdict`;
      const port = 'type inet_proto . inet_service : verdict';
      return [
        this.#block(`addresses${family}`, address),
        this.#block(`unserved${family}`, address),
        this.#block(`ports${family}`, port),
        this.#block(`unserved_ports${family}`, port),
      ];
    });
  }

  #block(name: string, type: string): string {
    const elements = [...(this.#served.get(name) ?? [])].map(([key, chain]) => `${key} : goto ${chain}`);
    const lines = elements.length === 0 ? [] : [`elements = { ${elements.sort().join(', ')} }`];
    return block(`map ${name}`, [type, ...lines]);
  }
}

function fixedChains(): string[] {
  const lookups = (addresses: string, ports: string, prefix: string) => [
    `${prefix}ip daddr . meta l4proto . th dport vmap @${addresses}4`,
    `${prefix}ip6 daddr . meta l4proto . th dport vmap @${addresses}6`,
    // An answer to 127.0.0.1 could not come back: the kernel drops it on its way from the bridge.
    `${prefix}ip daddr != 127.0.0.0/8 fib daddr type local meta l4proto . th dport vmap @${ports}4`,
    `${prefix}ip6 daddr != ::1 fib daddr type local meta l4proto . th dport vmap @${ports}6`,
  ];
  return [
    block('chain reject_new', ['meta l4proto tcp reject with tcp reset', 'reject']),
    block('chain services', lookups('addresses', 'ports', '')),
    block('chain unserved', lookups('unserved', 'unserved_ports', 'ct state new ')),
    ...['prerouting', 'output'].map((hook) =>
      block(`chain reject_${hook}`, [
        `type filter hook ${hook} priority ${REJECT_PRIORITY}; policy accept;`,
        'jump unserved',
      ]),
    ),
  ];
}

function natHooks(hash: string): string {
  return ['prerouting', 'output']
    .map((hook) =>
      block(`chain ${hook}`, [
        `type nat hook ${hook} priority -100; policy accept;`,
        `jump services comment "${hash}"`,
      ]),
    )
    .join('\n');
}

function postrouting(
  { subnets, gateways, hostAddresses = [] }: ServiceNetwork,
  forwards: readonly ServiceForward[],
): string {
  const remote = [4, 6].flatMap((family) => {
    const source = hostAddresses.find((address) => address.family === family);
    const ips = forwards
      .filter((forward) => forward.family === family)
      .flatMap(({ internal, external }) => [...internal, ...external])
      .filter(({ isLocal }) => !isLocal)
      .map(({ ip }) => ip);
    if (source === undefined || ips.length === 0) return [];
    const nat = family === 4 ? 'ip' : 'ip6';
    return [`${nat} daddr { ${[...new Set(ips)].sort().join(', ')} } snat ${nat} to ${formatIpAddress(source)}`];
  });
  const local = subnets.flatMap((subnet) => {
    const gateway = gateways.find(({ family }) => family === subnet.address.family);
    if (gateway === undefined) return [];
    const nat = subnet.address.family === 4 ? 'ip' : 'ip6';
    const range = formatIpNetwork(subnet);
    return [`${nat} saddr ${range} ${nat} daddr ${range} snat ${nat} to ${formatIpAddress(gateway)}`];
  });
  return block('chain postrouting', [
    `type nat hook postrouting priority ${SOURCE_PRIORITY}; policy accept;`,
    `ct mark & ${MARK} == 0 return`,
    ...remote,
    ...local,
  ]);
}

function block(head: string, lines: readonly string[]): string {
  return [`\t${head} {`, ...lines.map((line) => `\t\t${line}`), '\t}'].join('\n');
}
