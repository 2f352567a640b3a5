/**
 * The default network in the namespace of a host: who reaches whom, and what guests cannot send. Everything is tried with
 * real packets, with br_netfilter and without it.
 */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import type { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { arp, ethernet, icmp6, ip, ipPacket, neighbour, udp } from '#test/network/support/frames.ts';
import { API_PORT, ECHO_PORT, HostScene, METADATA, type SceneGuest } from '#test/network/support/host-scene.ts';
import { namespaceSkipReason, type Namespace, type Target } from '#test/network/support/namespace.ts';

const skip = namespaceSkipReason();
const GATEWAY = '10.244.0.1';
const GATEWAY_6 = 'fd12:3456:789a::1';
const GATEWAY_MAC = '0a:58:00:00:00:01';
const GATEWAY_LINK_LOCAL = 'fe80::858:ff:fe00:1';
const HOST_ADDRESSES = ['192.0.2.2', '198.51.100.1', GATEWAY, 'fd00:aa::2', 'fd00:bb::1', GATEWAY_6];

const echoOf = (host: string, answers = false): Target[] => [
  { protocol: 'tcp', host, port: ECHO_PORT, answers },
  { protocol: 'udp', host, port: ECHO_PORT, answers },
  { protocol: 'icmp', host, answers },
];

async function assertReaches(from: Namespace, hosts: readonly string[]): Promise<void> {
  const targets = hosts.flatMap((host) => echoOf(host, true));
  const results = await from.reach(targets);
  const silent = targets.filter((_, i) => results[i]?.answered !== true);
  assert.deepEqual(silent, [], 'all targets answer');
}

/** Nothing answers, and no error comes back either. */
async function assertSilent(from: Namespace, targets: readonly Target[], marker: string): Promise<void> {
  const results = await from.reach(targets, marker);
  assert.deepEqual(
    results,
    targets.map(() => ({ answered: false, error: 'silence' })),
  );
}

for (const bridgeNetfilter of [true, false]) {
  suite(`a host with br_netfilter ${bridgeNetfilter ? 'on' : 'off'}`, { skip }, () => {
    let scene: HostScene;
    let side: LinuxHostSide;
    let one: SceneGuest;
    let two: SceneGuest;
    let three: SceneGuest;

    before(async () => {
      scene = new HostScene();
      await scene.start({ bridgeNetfilter });
      side = scene.side();
      // Several agents begin at the same time.
      await Promise.all([side, scene.side(), scene.side()].map((agent) => agent.ensure()));
      [one, two, three] = [await scene.addGuest(5), await scene.addGuest(6), await scene.addGuest(7)];
      await Promise.all([one, two].map(({ port }) => side.allow(port)));
    });
    after(() => scene.remove());

    test('guests reach each other', async () => {
      await assertReaches(one.namespace, [two.four, two.six]);
    });

    test('guests reach the outside, which sees an address of the host and the port of the guest', async () => {
      await assertReaches(one.namespace, ['192.0.2.1', 'fd00:aa::1', '198.51.100.2', 'fd00:bb::2']);
      const from = 40_001;
      const [four, six] = await one.namespace.reach([
        { protocol: 'tcp', host: '192.0.2.1', port: ECHO_PORT, from, answers: true },
        { protocol: 'udp', host: 'fd00:aa::1', port: ECHO_PORT, answers: true },
      ]);
      assert.deepEqual(JSON.parse(four?.data ?? ''), ['::ffff:192.0.2.2', from]);
      assert.equal((JSON.parse(six?.data ?? '') as string[])[0], 'fd00:aa::2');
    });

    test('guests reach the gateway with echo requests and DNS only', async () => {
      const results = await one.namespace.reach([
        { protocol: 'icmp', host: GATEWAY, answers: true },
        { protocol: 'icmp', host: GATEWAY_6, answers: true },
      ]);
      assert.ok(results.every(({ answered }) => answered));
      for (const server of [GATEWAY, GATEWAY_6]) {
        for (const protocol of ['udp', 'tcp'] as const) {
          assert.deepEqual(await one.namespace.query(server, 'example.com', { protocol }), {
            code: 0,
            addresses: ['203.0.113.9'],
          });
        }
      }
    });

    for (const host of HOST_ADDRESSES) {
      test(`guests do not reach the API port at the address ${host} of the host`, async () => {
        await assertSilent(
          one.namespace,
          [
            { protocol: 'tcp', host, port: API_PORT },
            { protocol: 'udp', host, port: API_PORT },
          ],
          GATEWAY,
        );
      });
    }

    test('guests do not reach other addresses of the host with echo requests', async () => {
      const others = HOST_ADDRESSES.filter((host) => host !== GATEWAY && host !== GATEWAY_6);
      await assertSilent(
        one.namespace,
        others.map((host) => ({ protocol: 'icmp', host })),
        GATEWAY,
      );
    });

    test('guests do not reach a port of the host that somebody translates', async () => {
      scene.host.run(`nft -f - <<'END'
table ip published {
  chain prerouting { type nat hook prerouting priority dstnat; tcp dport 9000 dnat to 192.0.2.1:${ECHO_PORT}; }
}
END`);
      await assertSilent(one.namespace, [{ protocol: 'tcp', host: '198.51.100.1', port: 9000 }], GATEWAY);
      scene.host.run('nft delete table ip published');
    });

    test('guests do not reach 169.254.169.254, which the host reaches', async () => {
      const [reached] = await scene.host.reach([{ protocol: 'tcp', host: METADATA, port: ECHO_PORT, answers: true }]);
      assert.equal(reached?.answered, true);
      await assertSilent(one.namespace, echoOf(METADATA), GATEWAY);
    });

    test('guests do not reach the loopback and link-local addresses of the host', async () => {
      const frame = (data: string, destination: string, source: string) =>
        udp({
          from: one.mac,
          to: GATEWAY_MAC,
          source,
          destination,
          ports: [1234, API_PORT],
          data: Buffer.from(data),
        });
      await one.namespace.send('eth0', [
        frame('to 127.0.0.1', '127.0.0.1', one.four),
        frame('to link-local', GATEWAY_LINK_LOCAL, one.six),
        frame('from link-local', GATEWAY_LINK_LOCAL, 'fe80::ff:fe00:5'),
      ]);
      await assertSilent(one.namespace, [], GATEWAY);
      assert.deepEqual(
        (await scene.host.heard()).filter((data) => data.includes('link-local') || data.includes('127')),
        [],
      );
    });

    test('frames to a reserved group address do not reach the host through the port', async () => {
      const to = '01:80:c2:00:00:0e';
      const packet = { from: one.mac, to, source: one.four, destination: '192.0.2.2' };
      await one.namespace.send('eth0', [udp({ ...packet, ports: [1234, API_PORT], data: Buffer.from('around') })]);
      await assertSilent(one.namespace, [], GATEWAY);
      assert.ok(!(await scene.host.heard()).includes('around'));
    });

    test('the host reaches guests', async () => {
      await assertReaches(scene.host, [one.four, one.six, two.four]);
    });

    test('nobody outside reaches guests or the gateway, although they have routes', async () => {
      const targets = [one.four, one.six, GATEWAY, GATEWAY_6].flatMap((host) => echoOf(host));
      await assertSilent(scene.outside, targets, '192.0.2.2');
      await assertSilent(scene.lan, targets, '198.51.100.1');
    });

    test('the host is not a router between others, and the global switches stay off', async () => {
      assert.equal(readForwarding(scene.host), '0 0 1 1');
      await assertSilent(scene.outside, [...echoOf('198.51.100.2'), ...echoOf('fd00:bb::2')], '192.0.2.2');
      await assertSilent(scene.lan, [...echoOf('192.0.2.1'), ...echoOf('fd00:aa::1')], '198.51.100.1');
    });

    test('the host stays a router for others if somebody else made it one', async () => {
      scene.host.run('echo 1 >/proc/sys/net/ipv4/ip_forward; echo 1 >/proc/sys/net/ipv6/conf/all/forwarding');
      await side.ensure();
      await assertReaches(scene.outside, ['198.51.100.2', 'fd00:bb::2']);
      await assertSilent(scene.outside, [...echoOf(one.four), ...echoOf(one.six)], '192.0.2.2');
      scene.host.run('echo 0 >/proc/sys/net/ipv4/ip_forward; echo 0 >/proc/sys/net/ipv6/conf/all/forwarding');
      await side.ensure();
      await assertReaches(one.namespace, ['192.0.2.1', 'fd00:aa::1']);
      await assertSilent(scene.outside, [...echoOf('198.51.100.2'), ...echoOf('fd00:bb::2')], '192.0.2.2');
    });

    suite('frames of a guest', () => {
      const arrived: Buffer[] = [];
      before(async () => {
        const marker = Buffer.from('marker of the frames');
        const all = { ...goodFrames(one, two), ...badFrames(one, two) };
        await one.namespace.send('eth0', [...Object.values(all), ownDatagram(one, marker)]);
        arrived.push(...(await two.namespace.framesUntil(marker)));
      });
      // The kernel shows tagged frames without their tag.
      const has = (frame: Buffer) => arrived.some((other) => other.equals(frame) || other.equals(withoutTag(frame)));

      const names = { mac: '', four: '0.0.0.0', six: '::' } as SceneGuest;
      for (const name of Object.keys(goodFrames(names, names))) {
        test(`${name} arrives`, () => assert.ok(has(goodFrames(one, two)[name]!)));
      }
      for (const name of Object.keys(badFrames(names, names))) {
        test(`${name} is dropped`, () => assert.ok(!has(badFrames(one, two)[name]!)));
      }
    });

    test('a port without permission sends nothing; its permission is exact, and ends', async () => {
      const frames = ['before', 'another address', 'after'].map((text) => ownDatagram(three, Buffer.from(text)));
      await three.namespace.send('eth0', frames.slice(0, 1));
      await side.allow({ ...three.port, addresses: one.port.addresses });
      await three.namespace.send('eth0', frames.slice(1, 2));
      await side.allow(three.port);
      await assertReaches(three.namespace, [two.four, two.six, '192.0.2.1']);
      await side.forget(three.port.hostInterface);
      await three.namespace.send('eth0', frames.slice(2));
      const marker = Buffer.from('marker of the permissions');
      await one.namespace.send('eth0', [ownDatagram(one, marker)]);
      const arrived = await two.namespace.framesUntil(marker);
      assert.deepEqual(
        frames.filter((frame) => arrived.some((other) => other.equals(frame))),
        [],
      );
      await side.forget(three.port.hostInterface);
    });

    test('nothing passes between ports of the silent bridge, also with permission', async () => {
      await side.allow(three.port);
      const move = (bridge: string) =>
        [two, three].map(({ port }) => `ip link set ${port.hostInterface} master ${bridge}`).join('\n');
      const [token, marker] = [Buffer.from('token in silence'), Buffer.from('marker after silence')];
      scene.host.run(move(scene.plan.silentBridge));
      await three.namespace.send('eth0', [ownDatagram(three, token)]);
      await assertSilent(one.namespace, echoOf(two.four), GATEWAY);
      scene.host.run(move(scene.plan.bridge));
      await three.namespace.send('eth0', [ownDatagram(three, marker)]);
      const arrived = await two.namespace.framesUntil(marker);
      assert.ok(!arrived.some((frame) => frame.includes(token)));
      await assertReaches(three.namespace, [two.four]);
      await side.forget(three.port.hostInterface);
    });

    test('everything is repaired: a deleted bridge, flushed rules', async () => {
      scene.host.run(
        `ip link delete ${scene.plan.bridge}; ip link set ${scene.plan.silentBridge} up; nft flush ruleset`,
      );
      await side.ensure();
      scene.host.run(
        [one, two].map(({ port }) => `ip link set ${port.hostInterface} master ${scene.plan.bridge}`).join('\n'),
      );
      await assertReaches(one.namespace, [two.four, two.six, '192.0.2.1', 'fd00:aa::1']);
      await assertSilent(scene.outside, [...echoOf('198.51.100.2'), ...echoOf('fd00:bb::2')], '192.0.2.2');
      assert.match(scene.host.run(`ip -j link show ${scene.plan.silentBridge}`), /"operstate":"DOWN"/);
    });
  });
}

/** Returns the global switches of both families, then those of the interface to the outside. */
function readForwarding(host: Namespace): string {
  const text = host.run(`cd /proc/sys/net
    cat ipv4/ip_forward ipv6/conf/all/forwarding ipv4/conf/up0/forwarding ipv6/conf/up0/force_forwarding`);
  return text.trim().split('\n').join(' ');
}

function ownDatagram({ mac, four }: SceneGuest, data: Buffer): Buffer {
  return udp({ from: mac, source: four, destination: '10.244.255.255', ports: [1234, 1234], data });
}

function goodFrames(one: SceneGuest, two: SceneGuest): Record<string, Buffer> {
  const [from, toNodes] = [one.mac, { destination: 'ff02::1', from: one.mac }];
  return {
    'a datagram with its own addresses': ownDatagram(one, Buffer.from('own')),
    'a TCP reset of an unknown connection': ipPacket(
      { from, to: two.mac, source: one.four, destination: two.four },
      6,
      Buffer.from('1f904e20000000010000000150040000ffff0000', 'hex'),
    ),
    'an ARP request': arp({ from, operation: 'request', senderMac: from, sender: one.four, target: two.four }),
    'an ARP announcement': arp({ from, operation: 'reply', senderMac: from, sender: one.four, target: one.four }),
    'an ARP probe for its own address': arp({
      from,
      operation: 'request',
      senderMac: from,
      sender: '0.0.0.0',
      target: one.four,
    }),
    'a neighbour advertisement of itself': neighbour({ ...toNodes, source: one.six }, 136, one.six, targetOption(from)),
    'a neighbour solicitation from a link-local address': neighbour(
      { ...toNodes, source: 'fe80::5' },
      135,
      two.six,
      Buffer.alloc(0),
    ),
    'the duplicate address detection of its own address': neighbour(
      { ...toNodes, source: '::' },
      135,
      one.six,
      Buffer.alloc(0),
    ),
  };
}

const withoutTag = (frame: Buffer) => Buffer.concat([frame.subarray(0, 12), frame.subarray(16)]);

/** The link-layer address in a neighbour advertisement. */
function targetOption(address: string): Buffer {
  return Buffer.from(`0201${address.replaceAll(':', '')}`, 'hex');
}

function badFrames(one: SceneGuest, two: SceneGuest): Record<string, Buffer> {
  const from = one.mac;
  const data = Buffer.from('spoofed');
  const ports = [1234, 1234] as const;
  const toAll = { from, destination: '10.244.255.255', ports, data };
  const toNodes = { from, destination: 'ff02::1' };
  const reply = { from, operation: 'reply', senderMac: from, target: two.four } as const;
  const advert = targetOption(from);
  const router = Buffer.concat([Buffer.from('4000070800000000000000000101', 'hex'), Buffer.from(from, 'utf8')]);
  return {
    'a datagram with another MAC address': udp({ ...toAll, from: '02:00:00:00:00:99', source: one.four }),
    'a datagram with the MAC address of another guest': udp({ ...toAll, from: two.mac, source: one.four }),
    'a datagram with the MAC address of the gateway': udp({ ...toAll, from: GATEWAY_MAC, source: one.four }),
    'an IPv4 packet of another guest': udp({ ...toAll, source: two.four }),
    'an IPv4 packet of the gateway': udp({ ...toAll, source: GATEWAY }),
    'an IPv4 packet from outside of the network': udp({ ...toAll, source: '192.0.2.7' }),
    'an IPv6 packet of another guest': udp({ ...toNodes, source: two.six, ports, data }),
    'an IPv6 packet of the gateway': udp({ ...toNodes, source: GATEWAY_6, ports, data }),
    'a packet from a link-local address': udp({ ...toNodes, source: 'fe80::ff:fe00:5', ports, data }),
    'an ARP reply for another guest': arp({ ...reply, sender: two.four }),
    'an ARP reply for the gateway': arp({ ...reply, sender: GATEWAY }),
    'an ARP reply with the MAC address of another guest': arp({ ...reply, senderMac: two.mac, sender: one.four }),
    'an ARP probe for another address': arp({
      ...reply,
      operation: 'request',
      sender: '0.0.0.0',
      target: '10.244.0.77',
    }),
    'a question of a DHCP client': udp({
      from,
      source: '0.0.0.0',
      destination: '255.255.255.255',
      ports: [68, 67],
      data,
    }),
    'an answer of a DHCP server': udp({ ...toAll, source: one.four, ports: [67, 68] }),
    'an answer of a DHCPv6 server': udp({ ...toNodes, source: one.six, ports: [547, 546], data }),
    'a router advertisement': icmp6({ ...toNodes, source: 'fe80::ff:fe00:5' }, 134, router),
    'a router advertisement from a global address': icmp6({ ...toNodes, source: one.six }, 134, router),
    'a router advertisement behind another header': ipPacket(
      { ...toNodes, source: 'fe80::ff:fe00:5' },
      0,
      Buffer.concat([Buffer.from('3a00010400000000', 'hex'), Buffer.from([134, 0, 0, 0]), router]),
    ),
    'a redirect': icmp6(
      { ...toNodes, source: 'fe80::ff:fe00:5' },
      137,
      Buffer.concat([Buffer.alloc(4), ip(one.six), ip(two.six)]),
    ),
    'a neighbour advertisement of another guest': neighbour({ ...toNodes, source: one.six }, 136, two.six, advert),
    'a neighbour advertisement of the gateway': neighbour({ ...toNodes, source: one.six }, 136, GATEWAY_6, advert),
    'a neighbour advertisement of the link-local address of the gateway': neighbour(
      { ...toNodes, source: 'fe80::5' },
      136,
      GATEWAY_LINK_LOCAL,
      advert,
    ),
    'a neighbour solicitation from the link-local address of the gateway': neighbour(
      { ...toNodes, source: GATEWAY_LINK_LOCAL },
      135,
      two.six,
      Buffer.from(`0101${from.replaceAll(':', '')}`, 'hex'),
    ),
    'the duplicate address detection of another address': neighbour(
      { ...toNodes, source: '::' },
      135,
      two.six,
      Buffer.alloc(0),
    ),
    'a frame with a VLAN tag': ethernet({ from }, 0x8100, Buffer.concat([Buffer.from('000588b5', 'hex'), data])),
    'a frame of another protocol': ethernet({ from }, 0x88cc, data),
  };
}
