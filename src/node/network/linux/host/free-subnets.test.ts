import assert from 'node:assert/strict';
import { test } from 'node:test';
import { formatIpNetwork, parseIpNetwork } from '#lib/ip-address.ts';
import { checkSubnets, chooseSubnets } from '#node/network/linux/host/free-subnets.ts';
import { devicesOutside, parseRoutes, type HostRoute } from '#node/network/linux/host/host-routes.ts';

const route = (destination: string, device = 'eth0'): HostRoute => ({
  destination: parseIpNetwork(destination),
  device,
});

const choices: Record<string, { routes: readonly string[]; want: string }> = {
  'prefers 10.244.0.0/16': { routes: ['0.0.0.0/0', '192.0.2.0/24'], want: '10.244.0.0/16' },
  'ignores default routes, also those that a VPN writes as two halves': {
    routes: ['0.0.0.0/0', '0.0.0.0/1', '128.0.0.0/1'],
    want: '10.244.0.0/16',
  },
  'takes another network of 10.0.0.0/8 if that is in use': { routes: ['10.244.3.0/24'], want: '10.245.0.0/16' },
  'leaves 10.0.0.0/8 if a route covers it': { routes: ['10.0.0.0/8'], want: '172.31.0.0/16' },
  'leaves 172.16.0.0/12, too': { routes: ['10.0.0.0/8', '172.16.0.0/12'], want: '192.168.254.0/24' },
};

for (const [name, { routes, want }] of Object.entries(choices)) {
  test(name, () => {
    const [four] = chooseSubnets(
      routes.map((text) => route(text)),
      'seed',
    );
    assert.equal(formatIpNetwork(four), want);
  });
}

test('the subnet of IPv6 follows from the seed and avoids routes', () => {
  const six = (routes: HostRoute[], seed: string) => formatIpNetwork(chooseSubnets(routes, seed)[1]);
  const first = six([], 'a');
  assert.match(first, /^fd[0-9a-f]{2}:[0-9a-f:]+::\/64$/);
  assert.equal(six([], 'a'), first);
  assert.notEqual(six([], 'b'), first);
  assert.notEqual(six([route(first)], 'a'), first);
});

test('says so if nothing is free', () => {
  const all = ['10.0.0.0/8', '172.16.0.0/12', '192.168.0.0/16'].map((text) => route(text));
  assert.throws(() => chooseSubnets(all, 'seed'), /routes of this host cover 10.0.0.0\/8/);
  assert.throws(() => chooseSubnets([route('fd00::/8')], 'seed'), /routes of this host cover fd00::\/8/);
});

const checks: Record<string, { subnets: string[]; routes: HostRoute[]; want?: string }> = {
  'accepts a free subnet': { subnets: ['10.244.0.0/16'], routes: [route('10.1.0.0/16')] },
  'accepts the route of its own bridge': { subnets: ['10.244.0.0/16'], routes: [route('10.244.0.0/16', 'ss-1')] },
  'accepts a default route': { subnets: ['10.244.0.0/16'], routes: [route('0.0.0.0/0')] },
  'refuses a route inside': {
    subnets: ['10.244.0.0/16'],
    routes: [route('10.244.7.0/24', 'tun0')],
    want:
      'Cannot use the subnet 10.244.0.0/16 for guests: it overlaps with the route 10.244.7.0/24 of this host ' +
      '(device tun0); choose a subnet without a route, such as 10.245.0.0/16',
  },
  'refuses a route around it': {
    subnets: ['10.244.0.0/16'],
    routes: [route('10.0.0.0/8', 'tun0')],
    want:
      'Cannot use the subnet 10.244.0.0/16 for guests: it overlaps with the route 10.0.0.0/8 of this host ' +
      '(device tun0); choose a subnet without a route, such as 172.31.0.0/16',
  },
  'refuses an overlap of IPv6': {
    subnets: ['10.244.0.0/16', 'fd00::/64'],
    routes: [route('fd00::2/128', 'eth0')],
    want:
      'Cannot use the subnet fd00::/64 for guests: it overlaps with the route fd00::2/128 of this host ' +
      `(device eth0); choose a subnet without a route, such as ${formatIpNetwork(chooseSubnets([], 'suggestion')[1])}`,
  },
};

for (const [name, { subnets, routes, want }] of Object.entries(checks)) {
  test(name, () => {
    const check = () => checkSubnets(subnets.map(parseIpNetwork), routes, 'ss-1');
    if (want === undefined) check();
    else assert.throws(check, { message: want });
  });
}

test('reads routes as ip prints them', () => {
  const rows = [
    { dst: 'default', gateway: '192.0.2.1', dev: 'eth0' },
    { dst: '10.1.0.0/16', nexthops: [{ dev: 'eth1' }, { dev: 'eth2' }] },
    { type: 'local', dst: '192.0.2.2', dev: 'eth0', table: 'local' },
    { type: 'blackhole', dst: '10.0.0.0/8' },
    { type: 'local', dst: '127.0.0.1', dev: 'lo', table: 'local' },
  ];
  const routes = parseRoutes(JSON.stringify(rows), 4);
  assert.deepEqual(
    routes.map(({ destination, device }) => `${formatIpNetwork(destination)} ${device}`),
    ['0.0.0.0/0 eth0', '10.1.0.0/16 eth1', '10.1.0.0/16 eth2', '192.0.2.2/32 eth0', '127.0.0.1/32 lo'],
  );
  assert.deepEqual(devicesOutside(routes, 4, ['eth2']), ['eth0', 'eth1']);
  assert.deepEqual(parseRoutes('', 6), []);
});

test('a link-local address alone does not lead outside', () => {
  const rows = [
    { dst: 'fe80::/64', dev: 'eth0' },
    { type: 'local', dst: 'fe80::1', dev: 'eth0' },
    { type: 'multicast', dst: 'ff00::/8', dev: 'eth0' },
    { dst: 'fd00:aa::/64', dev: 'eth1' },
  ];
  assert.deepEqual(devicesOutside(parseRoutes(JSON.stringify(rows), 6), 6, []), ['eth1']);
});
