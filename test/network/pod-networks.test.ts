/** Networks of guests with real namespaces, plugins, rules and DHCP. The guests are namespaces behind taps. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TapRequest } from '#node/network/pod-networks.ts';
import {
  aRequest,
  aTap,
  configureMasqueraded,
  GATEWAY,
  GATEWAY_6,
  GUEST_MAC,
  PodScene,
  podSkipReason,
  runIn,
} from '#test/network/support/pod-scene.ts';

const skip = podSkipReason;
const NOTHING: string[] = [];
const isNumber = (line: string) => /^\d+$/.test(line);

describe('the network of a guest', { skip }, () => {
  test('gives a masqueraded guest its addresses, and translates connections in both directions', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace, interfaces } = await pods.attach(aRequest(), { isSilent: false });
    assert.deepEqual(interfaces, [{ podInterface: 'eth0', addresses: ['10.244.0.5', 'fd00:10:244::5'], mtu: 1450 }]);
    const guest = scene.guest();
    await scene.join(guest, namespace);

    const four = guest.run(dhclient('-4'));
    assert.match(four, /new_ip_address='10\.0\.2\.2'$/m);
    assert.match(four, /new_routers='10\.0\.2\.1'$/m);
    assert.match(four, /new_interface_mtu='1450'$/m);
    assert.match(four, /new_domain_name_servers='10\.244\.0\.1'$/m);
    assert.match(four, /new_host_name='db'$/m);
    assert.match(four, /new_domain_search='default\.svc\.cluster\.local\.'$/m);
    assert.match(four, /new_dhcp_lease_time='4294967295'$/m);
    const six = guest.run(dhclient('-6'));
    assert.match(six, /new_ip6_address='fd10:0:2::2'$/m);
    assert.match(six, /new_dhcp6_name_servers='fd00:10:244::1'$/m);

    const route = guest.run(DEFAULT_ROUTE_6);
    assert.match(route, /^default via fe80::5e:1f5a:1 dev eth0 /);

    configureMasqueraded(guest);
    const server = guest.start('serve', '7000');
    const outside = scene.host.start('serve', '7001');
    await Promise.all([server, outside].map((program) => program.until((line) => line === 'ready')));
    for (const [own, other] of [
      ['10.244.0.5', GATEWAY],
      ['fd00:10:244::5', GATEWAY_6],
    ] as const) {
      const inward = scene.host.start('talk', own, '7000');
      await inward.until(isNumber);
      const outward = guest.start('talk', other, '7001');
      await outward.until(isNumber);
    }
    // The guest sees the real address of its client, and others see that of the pod.
    assert.deepEqual(server.lines.slice(1), [`from ::ffff:${GATEWAY}`, `from ${GATEWAY_6}`]);
    assert.deepEqual(outside.lines.slice(1), ['from ::ffff:10.244.0.5', 'from fd00:10:244::5']);
    await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('moves connections between two nodes without a reset', async (t) => {
    for (const ports of [undefined, [{ protocol: 'tcp' as const, port: 7000 }]]) {
      const scene = new PodScene(t);
      const [source, target] = [await scene.node(), await scene.node()];
      const request = aRequest([aTap({ ...(ports && { ports }) })]);
      const from = await source.pods.attach(request, { isSilent: false });
      const guest = scene.guest();
      configureMasqueraded(guest);
      const leave = await scene.join(guest, from.namespace);
      const inside = guest.start('serve', '7000');
      const outside = scene.host.start('serve', '7001');
      const pushing = scene.host.start('push', '7002');
      await Promise.all([inside, outside, pushing].map((program) => program.until((line) => line === 'ready')));
      const streams = [
        scene.host.start('talk', '10.244.0.5', '7000'),
        scene.host.start('talk', 'fd00:10:244::5', '7000'),
        guest.start('talk', GATEWAY, '7001'),
        guest.start('talk', GATEWAY_6, '7001'),
        guest.start('pull', GATEWAY, '7002'),
      ];
      // Their next packet after the move is a FIN.
      const idle = [guest.start('idle', GATEWAY, '7001'), scene.host.start('idle', '10.244.0.5', '7000')];
      await Promise.all(idle.map((program) => program.until((line) => line === 'connected')));
      await Promise.all(streams.map((stream) => stream.more(10)));
      const to = await target.pods.attach(request, { isSilent: true });

      await source.pods.silence('guest-1');
      await leave();
      await scene.join(guest, to.namespace);
      await target.pods.activate('guest-1');
      await source.pods.detach('guest-1');
      await Promise.all(streams.map((stream) => stream.more(20)));

      for (const program of idle) program.finish();
      await Promise.all(idle.map((program) => program.until((line) => line === 'end')));
      await Promise.all([inside, outside].map((program) => program.until((line) => line === 'closed')));
      for (const stream of streams.slice(0, 4)) stream.finish();
      await Promise.all(streams.slice(0, 4).map((stream) => stream.until((line) => line === 'end')));
      await target.pods.detach('guest-1');
      assert.deepEqual(await scene.leftovers(), NOTHING);
    }
  });

  test('sends nothing while it is silent, and announces its addresses when it is activated', async (t) => {
    for (const binding of ['masquerade', 'bridge'] as const) {
      const scene = new PodScene(t);
      const { pods } = await scene.node();
      const sniffer = scene.host.start('sniff', scene.plan.bridge, scene.plan.silentBridge);
      await sniffer.until((line) => line === 'ready');
      await pods.attach(aRequest([aTap({ binding })]), { isSilent: true });
      const mac = binding === 'bridge' ? GUEST_MAC : '0a:58:0a:f4:00:05';
      // A marker: what was sent before it has been seen before it.
      scene.host.run(`ip link add name marker type veth peer name marker2
        echo 1 >/proc/sys/net/ipv6/conf/marker2/disable_ipv6
        ip link set dev marker master ${scene.plan.bridge} up; ip link set dev marker2 up`);
      await scene.host.start('send', 'marker2', MARKER).until((line) => line === 'sent');
      await sniffer.until((line) => line.endsWith(MARKER));
      assert.deepEqual(framesOfGuests(sniffer.lines, scene.plan.bridge), [MARKER]);

      await pods.activate('guest-1');
      await sniffer.until((line) => line.endsWith(gratuitousArp(mac, '0af40005')));
      await sniffer.until((line) => isAdvertisement(line, mac, 'fd000010024400000000000000000005'));
      await pods.silence('guest-1');
      await pods.detach('guest-1');
      assert.deepEqual(await scene.leftovers(), NOTHING);
    }
  });

  test('gives a bridged guest the address of its pod', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace } = await pods.attach(aRequest([aTap({ binding: 'bridge' })]), { isSilent: false });
    const guest = scene.guest();
    await scene.join(guest, namespace);
    const four = guest.run(dhclient('-4'));
    assert.match(four, /new_ip_address='10\.244\.0\.5'$/m);
    assert.match(four, /new_routers='10\.244\.0\.1'$/m);
    assert.match(four, /new_dhcp_server_identifier='10\.244\.0\.1'$/m);
    assert.match(guest.run(dhclient('-6')), /new_ip6_address='fd00:10:244::5'$/m);
    assert.match(guest.run(DEFAULT_ROUTE_6), /^default via fe80::5e:1f5a:1 dev eth0 /);

    guest.run('ip address add 10.244.0.5/16 dev eth0; ip address add fd00:10:244::5/64 dev eth0 nodad');
    scene.host.run('ip address add 192.0.2.1/32 dev lo; ip address add 2001:db8::1/128 dev lo');
    guest.run('ip route add default via 10.244.0.1');
    const inside = guest.start('serve', '7000');
    const outside = scene.host.start('serve', '7001');
    await Promise.all([inside, outside].map((program) => program.until((line) => line === 'ready')));
    for (const address of ['10.244.0.5', 'fd00:10:244::5'])
      await scene.host.start('talk', address, '7000').until(isNumber);
    // Both behind the router, and the router itself.
    for (const address of ['192.0.2.1', '2001:db8::1', GATEWAY, GATEWAY_6]) {
      await guest.start('talk', address, '7001').until(isNumber);
    }
    // Nothing but the guest answers for its address, and nobody sees the server in its namespace.
    assert.match(scene.host.run('ip neighbour show 10.244.0.5'), new RegExp(`lladdr ${GUEST_MAC} `));
    assert.match(guest.run('ip neighbour show 10.244.0.1'), new RegExp(`lladdr ${scene.plan.gatewayMac} `));
    await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('lets nothing out that has not the addresses of the guest, and answers for nobody', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace } = await pods.attach(aRequest([aTap({ ports: [{ protocol: 'tcp', port: 7000 }] })]), {
      isSilent: false,
    });
    const guest = scene.guest();
    configureMasqueraded(guest);
    await scene.join(guest, namespace);
    const sniffer = scene.host.start('sniff', scene.plan.bridge);
    await sniffer.until((line) => line === 'ready');
    guest.run('ip address add 10.0.2.9/24 dev eth0; ip address add 10.244.0.77/32 dev eth0');
    for (const source of ['10.0.2.9', '10.244.0.77']) {
      await guest.start('datagram', source, GATEWAY, '9').until((line) => line === 'sent');
    }
    await guest.start('datagram', '10.0.2.2', GATEWAY, '9').until((line) => line === 'sent');
    await sniffer.until((line) => isIpFrom(line, '0af40005'));
    assert.deepEqual(
      sniffer.lines.filter((line) => isIpFrom(line, '0a000209') || isIpFrom(line, '0af4004d')),
      [],
    );
    // A port without a program: the guest refuses it itself. One that is not listed: nobody does.
    for (const [port, result] of [
      ['7000', 'ConnectionRefusedError'],
      ['7001', 'TimeoutError'],
    ] as const) {
      await scene.host.start('refused', '10.244.0.5', port).until((line) => line === result);
    }
    // Neither the gateway nor the pod has a service for the guest.
    for (const address of ['10.0.2.1', '10.244.0.5', 'fd10:0:2::1']) {
      await guest.start('refused', address, '67').until((line) => line === 'TimeoutError');
    }
    await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('repairs bridges and DHCP servers', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace } = await pods.attach(aRequest(), { isSilent: false });
    await pods.attach(aRequest([aTap({ addresses: ['10.244.0.6/16'] })], 'guest-2'), { isSilent: true });
    const masters = () => scene.host.run(`ip -o link show | grep -o 'master [^ ]*' | sort`);
    const before = masters();
    assert.equal(before, `master ${scene.plan.bridge}\nmaster ${scene.plan.silentBridge}\n`);
    scene.host.run(`ip link delete ${scene.plan.bridge}; ip link delete ${scene.plan.silentBridge}`);
    const servers = () => scene.host.run(`ip netns pids ${namespace.replace('/run/netns/', '')}`);
    const first = servers();
    process.kill(Number(first), 'SIGKILL');
    await scene.clock.advance(10_000);
    while (masters() !== before || servers() === '' || servers() === first) await sleep(20);
    await pods.close();
    const { pods: next } = await scene.node({ directory: scene.directories[0] ?? '' });
    assert.deepEqual([...next.list()].sort(), ['guest-1', 'guest-2']);
    assert.equal(next.get('guest-1')?.namespace, namespace);
    for (const id of next.list()) await next.detach(id);
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('announces a bridged guest although an earlier announcement was cut off', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace } = await pods.attach(aRequest([aTap({ binding: 'bridge' })]), { isSilent: true });
    runIn(namespace, 'ip link add name announcer type veth peer name announced');
    await pods.activate('guest-1');
    assert.doesNotMatch(runIn(namespace, 'ip link show'), /announce/);
  });

  test('activates a guest that an agent adopts before it knows the default network', async (t) => {
    const scene = new PodScene(t);
    const first = await scene.node();
    await first.pods.attach(aRequest(), { isSilent: true });
    await first.pods.close();
    const [port = ''] = scene.allowed;
    const master = () => /master (\S+)/.exec(scene.host.run(`ip link show dev ${port}`))?.[1];
    await scene.node({
      directory: first.directory,
      beforeNetwork: async (pods) => {
        await pods.activate('guest-1');
        assert.equal(master(), scene.plan.silentBridge);
      },
    });
    assert.equal(master(), scene.plan.bridge);
  });

  test('permits and connects guests of an earlier agent although the host cannot be repaired at its start', async (t) => {
    for (const affects of ['others', 'everything'] as const) {
      const scene = new PodScene(t);
      const { pods, directory } = await scene.node();
      await pods.attach(aRequest(), { isSilent: false });
      await pods.close();
      const [port = ''] = scene.allowed;
      // Somebody flushes the rules and moves the port.
      scene.allowed.clear();
      scene.host.run(`ip link set dev ${port} nomaster`);
      scene.hostProblem = { affects, error: new Error('no DNS server') };
      await scene.node({ directory });
      const state = () => [
        ...scene.allowed,
        scene.host.run(`ip link show dev ${port}`).includes(`${scene.plan.bridge} `),
      ];
      if (affects === 'others') assert.deepEqual(state(), [port, true]);
      scene.hostProblem = undefined;
      await scene.clock.advance(10_000);
      for (let i = 0; i < 200 && state().length < 2; i++) await sleep(25);
      assert.equal(state()[0], port);
      for (let i = 0; i < 200 && state()[1] !== true; i++) await sleep(25);
      assert.deepEqual(state(), [port, true]);
    }
  });

  test('connects guests of networks with one family', async (t) => {
    for (const { subnet, address, gateway } of [
      { subnet: '10.244.0.0/16', address: '10.244.0.5', gateway: GATEWAY },
      { subnet: 'fd00:10:244::/64', address: 'fd00:10:244::5', gateway: GATEWAY_6 },
    ]) {
      const scene = new PodScene(t, [subnet]);
      const { pods } = await scene.node();
      const tap = aTap({ addresses: [`${address}/${subnet.split('/')[1]}`] });
      const { namespace } = await pods.attach(aRequest([tap]), { isSilent: false });
      const guest = scene.guest();
      configureMasqueraded(guest);
      await scene.join(guest, namespace);
      const inside = guest.start('serve', '7000');
      const outside = scene.host.start('serve', '7001');
      await Promise.all([inside, outside].map((program) => program.until((line) => line === 'ready')));
      const streams = [scene.host.start('talk', address, '7000'), guest.start('talk', gateway, '7001')];
      await Promise.all(streams.map((stream) => stream.until(isNumber)));
      await pods.detach('guest-1');
      assert.deepEqual(await scene.leftovers(), NOTHING);
    }
  });

  test('reports a namespace that cannot be removed, and removes it later', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const { namespace } = await pods.attach(aRequest(), { isSilent: false });
    execFileSync('mount', ['--bind', namespace, namespace]);
    await assert.rejects(
      pods.detach('guest-1'),
      /^PodNetworkError: Cannot remove the network of guest guest-1: .*; it is tried again$/,
    );
    assert.deepEqual(pods.list(), ['guest-1']);
    assert.equal(pods.get('guest-1'), undefined);
    const other = aRequest([aTap({ addresses: ['10.244.0.6/16'] })], 'guest-2');
    await pods.attach(other, { isSilent: false });
    await pods.detach('guest-2');
    await scene.clock.advance(10_000);
    while (pods.list().length > 0) await sleep(20);
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('leaves nothing behind, wherever it is killed', async (t) => {
    const scene = new PodScene(t);
    const steps: string[] = [];
    const watched = await scene.node({ afterStep: (step) => void steps.push(step) });
    await watched.pods.attach(aRequest([aTap({ binding: 'bridge' })]), { isSilent: false });
    await watched.pods.detach('guest-1');
    assert.ok(steps.length >= 9, steps.join());
    for (const [index] of steps.entries()) {
      const { directory } = await killedAfter(scene, index);
      const { pods } = await scene.node({ directory });
      assert.deepEqual(pods.list(), ['guest-1'], steps[index]);
      // Every second time it is used again first.
      if (index % 2 === 0) {
        const network = await pods.attach(aRequest(), { isSilent: false });
        assert.equal(pods.get('guest-1')?.namespace, network.namespace);
      }
      await pods.detach('guest-1');
      assert.deepEqual(pods.list(), []);
    }
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('connects to networks of other plugins', async (t) => {
    const scene = new PodScene(t);
    const { pods, directory } = await scene.node();
    const config = JSON.stringify({
      cniVersion: '0.4.0',
      name: 'lan',
      plugins: [
        {
          type: 'bridge',
          bridge: 'lan0',
          isGateway: true,
          ipam: { type: 'host-local', subnet: '192.168.7.0/24', dataDir: `${directory}/ipam` },
        },
        { type: 'tuning' },
      ],
    });
    const lan = aTap(
      { podInterface: 'net1', network: { type: 'cni', config }, binding: 'bridge', addresses: undefined },
      'tap1',
    );
    await pods.attach(aRequest(), { isSilent: true });
    const sniffed = scene.host.run(
      'ip link add name lan0 address 02:00:00:00:00:77 type bridge; ip link set dev lan0 up; echo ready',
    );
    assert.equal(sniffed, 'ready\n');
    const sniffer = scene.host.start('sniff', 'lan0');
    await sniffer.until((line) => line === 'ready');
    await pods.plug('guest-1', lan);
    const { namespace, interfaces } = pods.get('guest-1') ?? assert.fail('no network');
    assert.deepEqual(interfaces[1], { podInterface: 'net1', addresses: ['192.168.7.2'], mtu: 1500 });
    assert.deepEqual(
      sniffer.lines.filter((line) => /^lan0 .{12}(?!020000000077)/.test(line)),
      [],
    );
    await pods.activate('guest-1');
    await sniffer.until((line) => line.endsWith(gratuitousArp(GUEST_MAC, 'c0a80702')));

    const guest = scene.guest();
    await scene.join(guest, namespace, 'tap1');
    const lease = guest.run(dhclient('-4'));
    assert.match(lease, /new_ip_address='192\.168\.7\.2'$/m);
    assert.doesNotMatch(lease, /new_routers/);
    guest.run('ip address add 192.168.7.2/24 dev eth0');
    const server = scene.host.start('serve', '7001');
    await server.until((line) => line === 'ready');
    const stream = guest.start('talk', '192.168.7.1', '7001');
    await stream.until(isNumber);
    await pods.unplug('guest-1', 'net1');
    assert.equal(pods.get('guest-1')?.interfaces.length, 1);
    assert.doesNotMatch(runIn(namespace, 'ip -o link show'), /net1|tap1/);
    await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('does not let a plugin create a bridge by a wrong name', async (t) => {
    const scene = new PodScene(t);
    const { pods } = await scene.node();
    const request = aRequest([onNetwork({ type: 'bridge', bridge: 'typo0' })]);
    await assert.rejects(
      pods.attach(request, { isSilent: false }),
      /there is no bridge "typo0" on this node; create it/,
    );
    assert.doesNotMatch(scene.host.run('ip -o link show'), /typo0/);
    scene.host.run('ip link add name typo0 type bridge; ip link set dev typo0 up');
    await pods.attach(request, { isSilent: false });
    await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });

  test('connects a guest with a macvlan, and moves it to another node of the same host', async (t) => {
    const scene = new PodScene(t);
    const [source, target] = [await scene.node(), await scene.node()];
    const lan = scene.guest('52:54:00:00:00:99');
    scene.host.run(`ip link add uplink type veth peer name far netns ${basename(lan.path)}; ip link set dev uplink up`);
    lan.run('ip link set dev far up; ip address add 192.168.7.1/24 dev far');
    const request = aRequest([onNetwork({ type: 'macvlan', master: 'uplink', mode: 'bridge' })]);
    const from = await source.pods.attach(request, { isSilent: false });
    const guest = scene.guest();
    const leave = await scene.join(guest, from.namespace, 'tap1');
    guest.run('ip address add 192.168.7.5/24 dev eth0');
    const servers = [guest.start('serve', '7000'), lan.start('serve', '7001')];
    await Promise.all(servers.map((program) => program.until((line) => line === 'ready')));
    const streams = [lan.start('talk', '192.168.7.5', '7000'), guest.start('talk', '192.168.7.1', '7001')];
    await Promise.all(streams.map((stream) => stream.until(isNumber)));

    const to = await target.pods.attach(request, { isSilent: true });
    await source.pods.silence('guest-1');
    await leave();
    await scene.join(guest, to.namespace, 'tap1');
    await target.pods.activate('guest-1');
    await Promise.all(streams.map((stream) => stream.more(3)));
    for (const { pods } of [source, target]) await pods.detach('guest-1');
    assert.deepEqual(await scene.leftovers(), NOTHING);
  });
});

/** An interface on a network that a definition describes. */
function onNetwork(plugin: object): TapRequest {
  const config = JSON.stringify({ cniVersion: '1.0.0', name: 'lan', plugins: [plugin] });
  return aTap(
    { podInterface: 'net1', network: { type: 'cni', config }, binding: 'bridge', addresses: undefined },
    'tap1',
  );
}

/** A frame that no guest sends. */
const MARKER = `ffffffffffff02000000002288b5${'00'.repeat(46)}`;
const DEFAULT_ROUTE_6 = 'for i in $(seq 100); do ip -6 route show default proto ra | grep . && break; sleep 0.05; done';

/** Starts an agent that attaches and detaches a guest, and stops for ever after a step. */
async function killedAfter(scene: PodScene, index: number): Promise<{ directory: string }> {
  const reached = Promise.withResolvers<void>();
  let step = 0;
  const node = await scene.node({
    afterStep: () => {
      if (step++ !== index) return undefined;
      reached.resolve();
      return new Promise<void>(() => undefined);
    },
  });
  void node.pods
    .attach(aRequest([aTap({ binding: 'bridge' })]), { isSilent: false })
    .then(() => node.pods.detach('guest-1'));
  await reached.promise;
  scene.abandon(node.pods);
  return node;
}

const plain = (mac: string) => mac.replaceAll(':', '');

/** The beginning of a frame after the addresses: an ARP request in which sender and target are the same. */
function gratuitousArp(mac: string, address: string): string {
  return `ffffffffffff${plain(mac)}08060001080006040001${plain(mac)}${address}000000000000${address}`;
}

/** Reports whether a sniffed frame is an unsolicited neighbour advertisement. */
function isAdvertisement(line: string, mac: string, address: string): boolean {
  return line.includes(`333300000001${plain(mac)}86dd`) && line.includes('3aff') && line.includes(address);
}

/** Reports whether a sniffed frame is an IPv4 packet with this source. */
function isIpFrom(line: string, source: string): boolean {
  return new RegExp(`^\\S+ .{24}0800.{24}${source}`).test(line);
}

function framesOfGuests(lines: readonly string[], bridge: string): string[] {
  const own = plain('0a:58:00:00:00:01');
  return lines
    .filter((line) => line.startsWith(`${bridge} `))
    .map((line) => line.slice(bridge.length + 1))
    .filter((frame) => frame.slice(12, 24) !== own);
}

/** Asks for a lease once and prints what the server sends, without changing anything. */
function dhclient(family: '-4' | '-6'): string {
  return `
    script=$(mktemp) config=$(mktemp) lease=$(mktemp)
    printf '#!/bin/sh\\ncase $reason in PREINIT*) exit 0 ;; esac\\nset\\nkill -9 $PPID\\n' >"$script"
    chmod +x "$script"
    echo 'also request interface-mtu, domain-search, dhcp6.name-servers; timeout 8;' >"$config"
    dhclient ${family} -1 -d -sf "$script" -cf "$config" -lf "$lease" -pf /dev/null eth0 2>&1 || true
    rm -f "$script" "$config" "$lease"`;
}
