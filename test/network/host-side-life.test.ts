/** The life of the default network on a host: DNS, several planes, rules of others, networks of one family, removal. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, suite, test } from 'node:test';
import { LinuxHostSide } from '#node/network/linux/host/linux-host-side.ts';
import { API_PORT, aPlan, ECHO_PORT, HostScene, type SceneGuest } from '#test/network/support/host-scene.ts';
import { namespaceSkipReason, type Target } from '#test/network/support/namespace.ts';

const skip = namespaceSkipReason();
const GATEWAY = '10.244.0.1';
const CLUSTER_NAME = 'web.default.svc.cluster.local';

const echo = (host: string, answers = false): Target => ({ protocol: 'tcp', host, port: ECHO_PORT, answers });

suite('the default network on a host', { skip }, () => {
  let scene: HostScene;
  let side: LinuxHostSide;
  let guest: SceneGuest;

  before(async () => {
    scene = new HostScene();
    await scene.start({ bridgeNetfilter: true });
    side = scene.side();
    await side.ensure();
    guest = await scene.addGuest(5);
    await side.allow(guest.port);
  });
  after(() => scene.remove());

  const readDnsPid = async () => Number(await readFile(join(scene.dirOf(scene.plan), 'dnsmasq.pid'), 'utf8'));

  test('DNS forwards names, but not those of the cluster', async () => {
    assert.deepEqual(await guest.namespace.query(GATEWAY, 'example.com'), { code: 0, addresses: ['203.0.113.9'] });
    assert.deepEqual(await guest.namespace.query(GATEWAY, CLUSTER_NAME), { code: 3, addresses: [] });
  });

  test('DNS answers names from files that appear, change and vanish while it runs', async () => {
    const file = join(scene.dirOf(scene.plan), 'hosts', 'services');
    for (const address of ['10.244.7.7', '10.244.8.8']) {
      await writeFile(file, `${address} ${CLUSTER_NAME}\n`);
      await untilAnswers([address]);
    }
    await rm(file);
    await untilAnswers([]);
  });

  /** dnsmasq reads changed files by itself; asks until it has. */
  async function untilAnswers(addresses: string[]): Promise<void> {
    let answer: string[] = [];
    for (let i = 0; i < 500; i++) {
      answer = (await guest.namespace.query(GATEWAY, CLUSTER_NAME)).addresses;
      if (answer.join() === addresses.join()) return;
    }
    assert.deepEqual(answer, addresses);
  }

  test('DNS runs once, without root, and starts again after its death', async () => {
    const pid = await readDnsPid();
    assert.match(await readFile(`/proc/${pid}/status`, 'utf8'), /^Uid:\t[1-9]/m);
    await Promise.all([scene.side().ensure(), scene.side().ensure()]);
    assert.equal(await readDnsPid(), pid);
    process.kill(pid, 'SIGKILL');
    await Promise.all([scene.side().ensure(), side.ensure()]);
    assert.notEqual(await readDnsPid(), pid);
    assert.equal((await guest.namespace.query(GATEWAY, 'example.com')).code, 0);
  });

  test('a pid file that names another process does not stop it', async () => {
    const pid = await readDnsPid();
    await writeFile(join(scene.dirOf(scene.plan), 'dnsmasq.pid'), `${process.pid}\n`);
    process.kill(pid, 'SIGKILL');
    await side.ensure();
    assert.notEqual(await readDnsPid(), process.pid);
    assert.equal((await guest.namespace.query(GATEWAY, 'example.com')).code, 0);
  });

  test('a directory that the DNS server cannot enter is refused', async () => {
    const parent = scene.dirOf(scene.plan);
    await mkdir(join(parent, 'private'), { mode: 0o700 });
    const plan = aPlan(`${scene.prefix} private`, ['10.251.0.0/16']);
    const dir = join(parent, 'private', 'dns');
    const hidden = new LinuxHostSide({ plan, dir, namespace: scene.host.path });
    await assert.rejects(hidden.ensure(), /other users may not enter .*private; expected a directory that every user/);
    await hidden.remove();
  });

  test('two planes on a host do not meet, and one can be removed without the other', async () => {
    const plan = aPlan(`${scene.prefix} second`, ['10.245.0.0/16', 'fd12:3456:789b::/64']);
    const second = scene.side(plan);
    await second.ensure();
    const other = await scene.addGuest(9, plan);
    await second.allow(other.port);
    const reached = await other.namespace.reach([echo('192.0.2.1', true), echo('fd00:aa::1', true)]);
    assert.ok(reached.every(({ answered }) => answered));
    const strangers = [guest.four, guest.six, GATEWAY].map((host) => echo(host));
    for (const { error } of await other.namespace.reach(strangers, '10.245.0.1')) assert.equal(error, 'silence');
    for (const { error } of await guest.namespace.reach([echo(other.four), echo(other.six)], GATEWAY)) {
      assert.equal(error, 'silence');
    }
    await second.remove();
    const [outside] = await guest.namespace.reach([echo('192.0.2.1', true)]);
    assert.equal(outside?.answered, true);
    assert.doesNotMatch(scene.host.run('nft list ruleset; ip link show type bridge'), new RegExp(plan.key));
  });

  test('a subnet that overlaps with a route of the host is refused', async () => {
    const plan = aPlan(`${scene.prefix} third`, ['198.51.0.0/16']);
    await assert.rejects(scene.side(plan).ensure(), {
      message:
        'Cannot use the subnet 198.51.0.0/16 for guests: it overlaps with the route 198.51.100.0/24 of this host ' +
        '(device lan0); choose a subnet without a route, such as 10.245.0.0/16',
    });
    assert.doesNotMatch(scene.host.run('nft list ruleset; ip link show type bridge'), new RegExp(plan.key));
  });

  test('a port that does not have the name of a guest is refused', () => {
    assert.throws(
      () => void side.allow({ ...guest.port, hostInterface: 'up0' }),
      /Cannot allow the port "up0": expected s/,
    );
    assert.throws(() => void side.allow({ ...guest.port, macAddress: 'x' }), /"x" is not a MAC address/);
  });

  test('a chain of others that drops forwarded packets is named, until it makes an exception', async () => {
    assert.deepEqual(await side.findProblems(), []);
    const { bridge } = scene.plan;
    scene.host.run(`nft -f - <<'END'
table ip filter {
  chain DOCKER-USER { }
  chain FORWARD { type filter hook forward priority filter; policy drop; jump DOCKER-USER; }
}
table inet firewall {
  chain in { type filter hook input priority filter; policy accept; iifname "lo" accept; counter reject; }
  chain out { type filter hook output priority filter; policy drop; accept; }
}
END`);
    assert.deepEqual(await side.findProblems(), [
      'The chain FORWARD of the nftables table ip filter, which is not ours, drops packets between guests and the ' +
        `outside; allow them with: iptables -I DOCKER-USER -i ${bridge} -j ACCEPT; iptables -I DOCKER-USER -o ${bridge} -j ACCEPT`,
      'The chain in of the nftables table inet firewall, which is not ours, drops DNS queries of guests; allow them ' +
        `with: nft insert rule inet firewall in iifname ${bridge} accept`,
    ]);
    scene.host.run(`nft add rule ip filter DOCKER-USER iifname ${bridge} accept
      nft add rule ip filter DOCKER-USER oifname ${bridge} accept
      nft insert rule inet firewall in iifname ${bridge} accept`);
    assert.deepEqual(await side.findProblems(), []);
    scene.host.run('nft delete table ip filter; nft delete table inet firewall');
  });

  for (const [family, subnet, gateway] of [
    ['IPv4', '10.250.0.0/16', '10.250.0.1'],
    ['IPv6', 'fd12:3456:78ff::/64', 'fd12:3456:78ff::1'],
  ] as const) {
    test(`a network of ${family} only has one gateway`, async () => {
      const plan = aPlan(`${scene.prefix} ${family}`, [subnet]);
      const single = scene.side(plan);
      await single.ensure();
      const text = scene.host.run(`ip -o address show dev ${plan.bridge} scope global`);
      assert.deepEqual(
        [...text.matchAll(/inet6? (\S+)\//g)].map(([, address]) => address),
        [gateway],
      );
      await single.remove();
    });
  }

  test('removal leaves nothing behind', async () => {
    await side.remove();
    await side.remove();
    assert.equal(scene.host.run('nft list ruleset').trim(), '');
    assert.doesNotMatch(scene.host.run('ip link show type bridge'), /ss/);
    assert.equal(scene.host.run('cat /proc/sys/net/ipv[46]/conf/*/*forwarding | sort -u').trim(), '0');
    const [api] = await scene.outside.reach([{ protocol: 'tcp', host: '192.0.2.2', port: API_PORT, answers: true }]);
    assert.equal(api?.answered, true);
  });
});
