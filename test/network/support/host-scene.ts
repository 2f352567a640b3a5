/**
 * A host with the default network, in namespaces of the test:
 *
 *   guests ── bridge of the host ── host ── up0 ── outside   192.0.2.0/24, fd00:aa::/64, and everything else
 *                                    └──── lan0 ── lan       198.51.100.0/24, fd00:bb::/64
 *
 * Everybody else has routes to everybody, so that only rules and settings of the host keep packets away.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatIpAddress, parseIpAddress } from '#lib/ip-address.ts';
import type { GuestBridgePort } from '#node/network/linux/host-port.ts';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { planNetwork, type NetworkPlan } from '#node/network/linux/network-plan.ts';
import { Namespace } from '#test/network/support/namespace.ts';

export const ECHO_PORT = 8080;
export const API_PORT = 6443;
export const METADATA = '169.254.169.254';

export interface SceneGuest {
  readonly namespace: Namespace;
  readonly port: GuestBridgePort;
  readonly mac: string;
  readonly four: string;
  readonly six: string;
}

let count = 0;

/** Returns the plan of a network that another uid than that of other tests has. */
export function aPlan(uid: string, subnets: readonly string[]): NetworkPlan {
  return planNetwork({ metadata: { uid, name: 'default' }, spec: { subnets: [...subnets] } } as never);
}

export class HostScene {
  readonly prefix = `ssnet${process.pid}x${count++}`;
  readonly host = new Namespace(`${this.prefix}h`);
  readonly outside = new Namespace(`${this.prefix}o`);
  readonly lan = new Namespace(`${this.prefix}l`);
  readonly plan = aPlan(this.prefix, ['10.244.0.0/16', 'fd12:3456:789a::/64']);
  readonly #guests: Namespace[] = [];
  readonly #sides: LinuxHostSide[] = [];
  #dir = '';

  /** `bridgeNetfilter`: whether frames between ports of a bridge pass the rules of the inet family. */
  async start({ bridgeNetfilter }: { bridgeNetfilter: boolean }): Promise<void> {
    this.#dir = await mkdtemp(join(tmpdir(), 'selfsame-host-side-'));
    execFileSync('chmod', ['755', this.#dir]);
    const { host, outside, lan } = this;
    host.run(`
      for name in /proc/sys/net/bridge/bridge-nf-call-*; do echo ${bridgeNetfilter ? 1 : 0} >$name; done
      ${connect('up0', 'eth0', outside)}
      ${connect('lan0', 'eth0', lan)}
      ${address('up0', '192.0.2.2/24', 'fd00:aa::2/64')}
      ${address('lan0', '198.51.100.1/24', 'fd00:bb::1/64')}
      ip route add default via 192.0.2.1
      ip route add default via fd00:aa::1`);
    outside.run(`
      ${address('eth0', '192.0.2.1/24', 'fd00:aa::1/64')}
      ip address add ${METADATA}/32 dev lo
      ip route add 10.0.0.0/8 via 192.0.2.2
      ip route add 198.51.100.0/24 via 192.0.2.2
      ip route add fd00::/8 via fd00:aa::2`);
    lan.run(`
      ${address('eth0', '198.51.100.2/24', 'fd00:bb::2/64')}
      ip route add default via 198.51.100.1
      ip route add default via fd00:bb::1`);
    await host.listen({ tcp: [API_PORT], udp: [API_PORT] });
    for (const other of [outside, lan]) await other.listen({ tcp: [ECHO_PORT], udp: [ECHO_PORT] });
    await this.#serveUpstreamNames();
  }

  /** Returns the host's side of a network, as another agent would make it. */
  side(plan = this.plan): LinuxHostSide {
    const side = new LinuxHostSide({ plan, dir: this.dirOf(plan), namespace: this.host.path });
    this.#sides.push(side);
    return side;
  }

  dirOf(plan: NetworkPlan): string {
    return join(this.#dir, plan.key);
  }

  /** Connects a namespace with the bridge. It may not send anything yet. */
  async addGuest(number: number, plan = this.plan): Promise<SceneGuest> {
    const namespace = new Namespace(`${this.prefix}g${number}`);
    this.#guests.push(namespace);
    return await connectGuest({ host: this.host, namespace, number, plan });
  }

  async remove(): Promise<void> {
    for (const side of this.#sides) await side.remove();
    for (const namespace of [...this.#guests, this.host, this.outside, this.lan]) await namespace.remove();
    await rm(this.#dir, { recursive: true, force: true });
  }

  /** Answers for the DNS servers that this machine has in /etc/resolv.conf, because dnsmasq reads that file. */
  async #serveUpstreamNames(): Promise<void> {
    const servers = [...readFileSync('/etc/resolv.conf', 'utf8').matchAll(/^nameserver\s+(\S+)/gm)].map(([, s]) => s!);
    for (const server of new Set(servers)) {
      const isLoopback = server.startsWith('127.') || server === '::1';
      const owner = isLoopback ? this.host : this.outside;
      if (!isLoopback) owner.run(`ip address add ${server} dev lo ${server.includes(':') ? 'nodad' : ''}`);
      await owner.serveNames(server, '203.0.113.9');
    }
  }
}

interface NewGuest {
  readonly host: Namespace;
  readonly namespace: Namespace;
  /** The number of its addresses. */
  readonly number: number;
  readonly plan: NetworkPlan;
}

/** Connects a namespace with the bridge of a host. It may not send anything yet. */
export async function connectGuest({ host, namespace, number, plan }: NewGuest): Promise<SceneGuest> {
  const [four = '', six = ''] = plan.subnets.map(({ address: { family, value } }) =>
    formatIpAddress({ family, value: value + BigInt(number) }),
  );
  const mac = `02:00:00:00:00:${number.toString(16).padStart(2, '0')}`;
  const hostInterface = `${plan.portPrefix}g${number}`;
  const [gateway4, gateway6] = plan.gateways.map(formatIpAddress);
  host.run(`
    ip link add ${hostInterface} type veth peer name eth0 address ${mac} netns ${namespace.name}
    ip link set ${hostInterface} mtu ${plan.mtu} master ${plan.bridge} up`);
  namespace.run(`
    ip link set eth0 mtu ${plan.mtu}
    ${address('eth0', `${four}/16`, `${six}/64`)}
    ip route add default via ${gateway4}
    ip route add default via ${gateway6}`);
  await namespace.listen({ tcp: [ECHO_PORT], udp: [ECHO_PORT] });
  await namespace.watch('eth0');
  const addresses = [four, six].map(parseIpAddress).map(({ family, value }) => ({ family, value }));
  return { namespace, mac, four, six, port: { hostInterface, macAddress: mac, addresses } };
}

const connect = (device: string, peer: string, { name }: Namespace) =>
  `ip link add ${device} type veth peer name ${peer} netns ${name}`;

const address = (device: string, four: string, six: string) => `
  ip link set ${device} up
  ip address add ${four} dev ${device}
  ip address add ${six} dev ${device} nodad`;
