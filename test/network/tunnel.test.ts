/** One network on several hosts, joined by a tunnel: guests of both are neighbours, gateways are not. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import type { NetworkPlan } from '#node/network/linux/network-plan.ts';
import { arp, icmp6, neighbour, udp } from '#test/network/support/frames.ts';
import { aPlan, connectGuest, ECHO_PORT, type SceneGuest } from '#test/network/support/host-scene.ts';
import { Namespace, namespaceSkipReason, type Target } from '#test/network/support/namespace.ts';

const skip = namespaceSkipReason();
const GATEWAY = '10.244.0.1';
const GATEWAY_6 = 'fd12:3456:789a::1';
const GATEWAY_MAC = '0a:58:00:00:00:01';
/** The address of each host between hosts. The third is not a peer. */
const LOCAL = ['203.0.113.1', '203.0.113.2', '203.0.113.3'] as const;

const targetsOf = (host: string): Target[] => [
  { protocol: 'tcp', host, port: ECHO_PORT, answers: true },
  { protocol: 'udp', host, port: ECHO_PORT, size: 1400, answers: true },
  { protocol: 'icmp', host, answers: true },
];

for (const bridgeNetfilter of [true, false]) {
  suite(`two hosts with br_netfilter ${bridgeNetfilter ? 'on' : 'off'}`, { skip }, () => {
    const prefix = `sstun${process.pid}${bridgeNetfilter ? 'a' : 'b'}`;
    const spaces: Namespace[] = [];
    let plan: NetworkPlan;
    let dir: string;
    let wire: Namespace;
    let hosts: Namespace[];
    let sides: LinuxHostSide[];
    let one: SceneGuest;
    let two: SceneGuest;

    const space = (name: string) => {
      const made = new Namespace(`${prefix}${name}`);
      spaces.push(made);
      return made;
    };

    before(async () => {
      plan = aPlan(prefix, ['10.244.0.0/16', 'fd12:3456:789a::/64']);
      dir = await mkdtemp(join(tmpdir(), 'selfsame-tunnel-'));
      wire = space('wire');
      wire.run('ip link add wire type bridge forward_delay 0; ip link set wire up');
      hosts = LOCAL.map((address, i) => {
        const host = space(`h${i}`);
        wire.run(`ip link add w${i} type veth peer name up0 netns ${host.name}; ip link set w${i} master wire up`);
        host.run(`ip link set up0 up; ip address add ${address}/24 dev up0
          for name in /proc/sys/net/bridge/bridge-nf-call-*; do echo ${bridgeNetfilter ? 1 : 0} >$name; done`);
        return host;
      });
      await rm(dir, { recursive: true });
      sides = hosts.map(({ path }, i) => new LinuxHostSide({ plan, dir: `${dir}${i}`, namespace: path }));
      await Promise.all(sides.map((side) => side.ensure()));
      await Promise.all([
        sides[0]!.setPeers(LOCAL[0], [LOCAL[0], LOCAL[1]]),
        sides[1]!.setPeers(LOCAL[1], [LOCAL[0], LOCAL[1]]),
        sides[2]!.setPeers(LOCAL[2], [LOCAL[0], LOCAL[1]]),
      ]);
      [one, two] = [await addGuest(0, 5), await addGuest(1, 6)];
    });

    after(async () => {
      for (const side of sides) await side.remove();
      for (const namespace of spaces) await namespace.remove();
      for (const i of LOCAL.keys()) await rm(`${dir}${i}`, { recursive: true, force: true });
    });

    async function addGuest(host: number, number: number, namespace?: Namespace): Promise<SceneGuest> {
      const inside = namespace ?? space(`g${number}`);
      const guest = await connectGuest({ host: hosts[host]!, namespace: inside, number, plan });
      await sides[host]!.allow(guest.port);
      return guest;
    }

    async function assertReaches(from: SceneGuest, addresses: readonly string[]): Promise<void> {
      const targets = addresses.flatMap(targetsOf);
      const results = await from.namespace.reach(targets);
      assert.deepEqual(
        targets.filter((_, i) => results[i]?.answered !== true),
        [],
      );
    }

    const datagram = (guest: SceneGuest, text: string) =>
      udp({
        from: guest.mac,
        source: guest.four,
        destination: '10.244.255.255',
        ports: [1234, 1234],
        data: Buffer.from(text),
      });

    test('guests of two hosts reach each other, with packets of full size', async () => {
      await assertReaches(one, [two.four, two.six]);
      await assertReaches(two, [one.four, one.six]);
    });

    test('each host answers its own guests, and nothing of the gateway crosses', async () => {
      const gateway = { host: GATEWAY, protocol: 'icmp', answers: true } as const;
      for (const guest of [one, two]) {
        assert.ok((await guest.namespace.reach([gateway, { ...gateway, host: GATEWAY_6 }])).every((r) => r.answered));
        assert.ok((await hosts[guest === one ? 0 : 1]!.reach([{ ...gateway, host: guest.four }]))[0]?.answered);
      }
      const arpOf = { from: two.mac, operation: 'request', senderMac: two.mac, sender: two.four } as const;
      const solicitation = { from: two.mac, source: two.six, destination: 'ff02::1' };
      const stopped = [
        arp({ ...arpOf, target: GATEWAY }),
        neighbour(solicitation, 135, GATEWAY_6, Buffer.alloc(0)),
        icmp6(solicitation, 133, Buffer.alloc(4)),
      ];
      const announced = [
        arp({ ...arpOf, target: two.four }),
        neighbour(solicitation, 136, two.six, Buffer.alloc(8)),
        datagram(two, 'marker of two'),
      ];
      // The host asks for the address of a guest that does not exist.
      await hosts[1]!.reach([{ protocol: 'icmp', host: '10.244.0.99' }], LOCAL[0]);
      await two.namespace.send('eth0', [...stopped, ...announced]);
      const arrived = await one.namespace.framesUntil(Buffer.from('marker of two'));
      const has = (frame: Buffer) => arrived.some((other) => other.equals(frame));
      assert.deepEqual(stopped.filter(has), []);
      assert.deepEqual(announced.filter(has), announced);
      const macs = arrived.filter((frame) => frame.toString('hex', 6, 12) === GATEWAY_MAC.replaceAll(':', ''));
      // Frames of its own gateway are to this guest only, or ask for it.
      assert.ok(!macs.some((frame) => frame.includes(Buffer.from('0af40063', 'hex'))));
    });

    test('frames of a peer with other addresses than those of guests are dropped', async () => {
      const from = '02:00:00:00:00:66';
      const data = Buffer.from('from a peer');
      const toAll = { from, destination: '10.244.255.255', ports: [1, 2] as const, data };
      const bad = [
        udp({ ...toAll, source: '192.0.2.9' }),
        udp({ ...toAll, source: GATEWAY }),
        udp({ ...toAll, from: GATEWAY_MAC, source: '10.244.0.9' }),
        udp({ ...toAll, source: '10.244.0.9', ports: [67, 68] }),
        udp({ ...toAll, source: 'fd00::9', destination: 'ff02::1' }),
        arp({ from, operation: 'reply', senderMac: from, sender: GATEWAY, target: one.four }),
        arp({ from, operation: 'reply', senderMac: from, sender: '192.0.2.9', target: one.four }),
        neighbour({ from, source: 'fe80::9', destination: 'ff02::1' }, 136, GATEWAY_6, Buffer.alloc(8)),
        icmp6({ from, source: 'fe80::9', destination: 'ff02::1' }, 134, Buffer.alloc(12)),
      ];
      await sendThroughTunnel(1, [...bad, datagram(two, 'marker of a peer')]);
      const arrived = await one.namespace.framesUntil(Buffer.from('marker of a peer'));
      assert.deepEqual(
        bad.filter((frame) => arrived.some((other) => other.equals(frame))),
        [],
      );
    });

    /** Sends frames into the tunnel of a host whose rules are gone. */
    async function sendThroughTunnel(host: number, frames: readonly Buffer[]): Promise<void> {
      const { table } = plan;
      hosts[host]!.run(`nft flush chain bridge ${table} postrouting`);
      await hosts[host]!.send(`ssvx-${plan.key}`, frames);
      hosts[host]!.run(`nft delete table bridge ${table}`);
      await sides[host]!.ensure();
    }

    test('packets of a host that is not a peer are dropped, until it is one', async () => {
      const frames = ['stranger', 'former stranger'].map((text) => datagram(two, text));
      await hosts[2]!.send(`ssvx-${plan.key}`, frames.slice(0, 1));
      // The answer of the host itself shows that the frame has arrived, too.
      assert.ok((await hosts[2]!.reach([{ protocol: 'icmp', host: LOCAL[0], answers: true }]))[0]?.answered);
      await sides[0]!.setPeers(LOCAL[0], LOCAL);
      await hosts[2]!.send(`ssvx-${plan.key}`, frames.slice(1));
      const arrived = await one.namespace.framesUntil(Buffer.from('former stranger'));
      assert.ok(!arrived.some((frame) => frame.equals(frames[0]!)));
      await sides[0]!.setPeers(LOCAL[0], [LOCAL[1]]);
    });

    test('a guest that moves to another host is found there after its announcement', async () => {
      const moved = await addGuest(0, 7);
      await assertReaches(one, [moved.four, moved.six]);
      await assertReaches(two, [moved.four, moved.six]);
      hosts[0]!.run(`ip link delete ${moved.port.hostInterface}`);
      await sides[0]!.forget(moved.port.hostInterface);
      const there = await addGuest(1, 7, moved.namespace);
      const { mac, four, six } = there;
      await there.namespace.send('eth0', [
        arp({ from: mac, operation: 'request', senderMac: mac, sender: four, target: four }),
        neighbour({ from: mac, source: six, destination: 'ff02::1' }, 136, six, Buffer.alloc(8)),
      ]);
      await assertReaches(one, [four, six]);
      await assertReaches(two, [four, six]);
    });

    test('the tunnel is repaired with its bridge, and ends without peers', async () => {
      hosts[0]!.run(`ip link delete ${plan.bridge}; ip link delete ssvx-${plan.key}`);
      await sides[0]!.ensure();
      hosts[0]!.run(`ip link set ${one.port.hostInterface} master ${plan.bridge}`);
      await assertReaches(one, [two.four]);
      await sides[0]!.setPeers(LOCAL[0], [LOCAL[0]]);
      assert.equal(hosts[0]!.run('ip link show type vxlan').trim(), '');
      assert.throws(() => void sides[0]!.setPeers(LOCAL[0], ['fd00::1']), /expected addresses of one family/);
    });
  });
}
