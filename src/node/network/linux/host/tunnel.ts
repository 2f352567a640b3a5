/**
 * The tunnel between the hosts of a network: a VXLAN device that is a port of the bridge, so that the guests of all hosts
 * are on one segment. Peers are the addresses of the other hosts; there is no multicast and no encryption.
 *
 * - UDP port 8473: 4789 and 8472 belong to other overlays on many machines (Calico, Flannel, Cilium). All planes use
 *   the same port; the network identifier follows from the key of the network.
 * - The device learns which MAC address is behind which peer, so that only unknown addresses and broadcasts go to all.
 *   The announcement of a moved guest (gratuitous ARP, neighbour advertisement) therefore also moves its entry.
 * - The gateway has the same MAC and addresses on every host. Nothing from it, to it or about it crosses the tunnel, and
 *   neither do DHCP and router messages: each host answers its own guests. So a host reaches only its own guests.
 * - Frames from the tunnel must have addresses of the subnets, and packets from others than peers are dropped.
 */
import { formatIpAddress, formatIpNetwork, parseIpAddress, type IpAddress } from '#lib/ip-address.ts';
import type { RunOnHost } from '#node/network/linux/host/host-commands.ts';
import { buildDeletion, readElements } from '#node/network/linux/host/rule-sets.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';

const TUNNEL_PORT = 8473;
const MAX_PEERS = 1000;
const ALL_ZERO = '00:00:00:00:00:00';

/** The addresses between which packets of the tunnel travel. */
export interface TunnelPeers {
  readonly local: IpAddress;
  readonly peers: readonly IpAddress[];
}

const deviceOf = ({ key }: NetworkPlan) => `ssvx-${key}`;
const identifierOf = ({ key }: NetworkPlan) => Number.parseInt(key.slice(0, 6), 16);

/** Throws if an address is not usable. An address of this host among the peers is ignored. */
export function parsePeers(local: string, peers: readonly string[]): TunnelPeers {
  if (peers.length > MAX_PEERS) {
    throw new Error(`Cannot connect this host with ${peers.length} others; at most ${MAX_PEERS} are possible`);
  }
  const parse = (text: string): IpAddress => {
    const { family, value } = parseIpAddress(text);
    return { family, value };
  };
  const own = parse(local);
  const others = [...new Set(peers)].map(parse).filter(({ family, value }) => {
    if (family === own.family) return value !== own.value;
    const text = formatIpAddress({ family, value });
    throw new Error(
      `Cannot connect this host with ${text}: the address of this host is ${local}; expected addresses of one family`,
    );
  });
  return { local: own, peers: others };
}

/** Builds the chains of the bridge family for the port of the tunnel. */
export function buildTunnelRules(plan: NetworkPlan, gatewayLinkLocal: IpAddress): { chains: string; rules: string } {
  const { table, gatewayMac, subnets, gateways } = plan;
  const device = deviceOf(plan);
  const subnet = (family: 4 | 6) => subnets.filter(({ address }) => address.family === family).map(formatIpNetwork);
  const gateway = (family: 4 | 6) => gateways.filter((address) => address.family === family);
  const target = ({ value }: IpAddress) => `0x${value.toString(16).padStart(32, '0')}`;
  const lines = (indented: readonly string[]) => indented.map((line) => `\n    ${line}`).join('');
  return {
    chains: `  chain postrouting { type filter hook postrouting priority 300; policy accept; }
  chain tunnel { }
  chain tunnel_arp { }
  chain tunnel_ip6 { }
`,
    rules: `flush chain bridge ${table} postrouting
flush chain bridge ${table} tunnel
flush chain bridge ${table} tunnel_arp
flush chain bridge ${table} tunnel_ip6
table bridge ${table} {
  chain prerouting {
    iifname "${device}" jump tunnel
  }
  chain postrouting {
    oifname "${device}" jump tunnel
  }
  chain tunnel {
    ether saddr ${gatewayMac} drop
    ether daddr ${gatewayMac} drop
    udp dport { 67, 68, 546, 547 } drop${lines(gateway(4).map((a) => `ip saddr ${formatIpAddress(a)} drop`))}${lines(
      subnet(4).map((net) => `ip saddr ${net} accept`),
    )}
    ether type ip6 goto tunnel_ip6
    ether type arp goto tunnel_arp
    drop
  }
  chain tunnel_arp {${lines(
    gateway(4).flatMap((a) => [`arp saddr ip ${formatIpAddress(a)} drop`, `arp daddr ip ${formatIpAddress(a)} drop`]),
  )}${lines(subnet(4).flatMap((net) => [`arp saddr ip ${net} accept`, `arp saddr ip 0.0.0.0 arp daddr ip ${net} accept`]))}
    drop
  }
  chain tunnel_ip6 {
    icmpv6 type { nd-router-solicit, nd-router-advert, nd-redirect } drop${lines(
      [...gateway(6), gatewayLinkLocal].flatMap((a) => [
        `ip6 saddr ${formatIpAddress(a)} drop`,
        `icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } @th,64,128 ${target(a)} drop`,
      ]),
    )}
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } ip6 saddr { ::, fe80::/10 } accept${lines(
      subnet(6).map((net) => `ip6 saddr ${net} accept`),
    )}
    drop
  }
}
`,
  };
}

/** Builds the rules of the inet family that drop packets of this tunnel from others than peers. */
export function buildPeerRules(plan: NetworkPlan): { sets: string; rules: string } {
  const match = `udp dport ${TUNNEL_PORT} @th,96,24 ${identifierOf(plan)}`;
  return {
    sets: `  set peers4 { type ipv4_addr; }\n  set peers6 { type ipv6_addr; }\n`,
    rules: `    ${match} ip saddr != @peers4 drop\n    ${match} ip6 saddr != @peers6 drop\n`,
  };
}

/** Connects the bridge with the peers; without peers, removes the tunnel. May be repeated at any time. */
export async function ensureTunnel(run: RunOnHost, plan: NetworkPlan, tunnel: TunnelPeers): Promise<void> {
  await allowPeers(run, plan, tunnel.peers);
  if (tunnel.peers.length === 0) return removeTunnel(run, plan);
  await ensureDevice(run, plan, tunnel.local);
  await ensureFloods(run, deviceOf(plan), tunnel.peers.map(formatIpAddress));
}

export async function removeTunnel(run: RunOnHost, plan: NetworkPlan): Promise<void> {
  if ((await readDevice(run, plan)) !== undefined) await run('ip', ['link', 'delete', deviceOf(plan)]);
}

async function allowPeers(run: RunOnHost, { table }: NetworkPlan, peers: readonly IpAddress[]): Promise<void> {
  const texts: string[] = [];
  for (const family of [4, 6] as const) {
    const set = `peers${family}`;
    const wanted = peers.filter((peer) => peer.family === family).map(formatIpAddress);
    const found = (await readElements(run, 'inet', table, set)).map(([address = '']) => address);
    const gone = found.filter((address) => !wanted.includes(address));
    texts.push(buildDeletion('inet', table, set, gone));
    if (wanted.length > 0) texts.push(`add element inet ${table} ${set} { ${wanted.join(', ')} }\n`);
  }
  if (texts.join('') !== '') await run('nft', ['-f', '-'], texts.join(''));
}

interface VxlanDevice {
  readonly ifname?: string;
  readonly mtu: number;
  readonly master?: string;
  readonly flags: readonly string[];
  readonly linkinfo?: { readonly info_data?: { readonly local?: string; readonly local6?: string } };
}

async function readDevice(run: RunOnHost, plan: NetworkPlan): Promise<VxlanDevice | undefined> {
  const text = await run('ip', ['-j', '-d', 'link', 'show', 'type', 'vxlan']);
  const devices = text.trim() === '' ? [] : (JSON.parse(text) as VxlanDevice[]);
  return devices.find(({ ifname }) => ifname === deviceOf(plan));
}

async function ensureDevice(run: RunOnHost, plan: NetworkPlan, local: IpAddress): Promise<void> {
  const device = deviceOf(plan);
  const address = formatIpAddress(local);
  let found = await readDevice(run, plan);
  const data = found?.linkinfo?.info_data;
  if (found !== undefined && (data?.local ?? data?.local6) !== address) {
    await run('ip', ['link', 'delete', device]);
    found = undefined;
  }
  if (found === undefined) {
    const options = ['id', String(identifierOf(plan)), 'dstport', String(TUNNEL_PORT), 'local', address, 'ttl', '64'];
    await run('ip', ['link', 'add', device, 'mtu', String(plan.mtu), 'type', 'vxlan', ...options]).catch((error) => {
      if (!/File exists/.test((error as Error).message) || sameTunnel(error as Error)) throw error;
    });
    // The device is only a port: it must not send anything by itself.
    await run('ip', ['link', 'set', device, 'addrgenmode', 'none']);
  }
  if (found?.master !== plan.bridge) await run('ip', ['link', 'set', device, 'master', plan.bridge]);
  if (found?.flags.includes('UP') !== true) await run('ip', ['link', 'set', device, 'up']);
}

/** Reports whether another device has the same identifier and port, which is not a device that an agent of ours made. */
const sameTunnel = ({ message }: Error) => /VNI/.test(message);

/** Makes broadcasts and frames to unknown addresses go to all peers. */
async function ensureFloods(run: RunOnHost, device: string, peers: readonly string[]): Promise<void> {
  const text = await run('bridge', ['-j', 'fdb', 'show', 'dev', device]);
  const entries = text.trim() === '' ? [] : (JSON.parse(text) as { mac?: string; dst?: string }[]);
  const found = entries.flatMap(({ mac, dst }) => (mac === ALL_ZERO && dst !== undefined ? [dst] : []));
  for (const peer of peers.filter((address) => !found.includes(address))) {
    await run('bridge', ['fdb', 'append', ALL_ZERO, 'dev', device, 'dst', peer]);
  }
  for (const peer of found.filter((address) => !peers.includes(address))) {
    await run('bridge', ['fdb', 'delete', ALL_ZERO, 'dev', device, 'dst', peer]).catch((error: unknown) => {
      // Another agent deleted it.
      if (!/No such file|Cannot find/.test((error as Error).message)) throw error;
    });
  }
}
