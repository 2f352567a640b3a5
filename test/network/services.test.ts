/**
 * Services with real rules and a real DNS server: the engine allocates addresses and keeps EndpointSlices, the node routes
 * them. Guests, host and the outside are network namespaces.
 */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { createInProcessTransport } from '#client/in-process.ts';
import { Informer } from '#client/informer.ts';
import { createClient } from '#client/rest-client.ts';
import { systemClock } from '#lib/clock.ts';
import { parseIpAddress, parseIpNetwork } from '#lib/ip-address.ts';
import { silentLog } from '#lib/log.ts';
import { ROUTED_SERVICES, ROUTED_SLICES } from '#node/services/kinds.ts';
import { nftRuleSets } from '#node/services/nft.ts';
import { HOST_NODES, startServiceRouting, type ServiceRouting } from '#node/services/service-routing.ts';
import {
  createServiceHosts,
  GATEWAY,
  guestIp,
  guestIp6,
  HOST_OUTSIDE,
  OUTSIDE,
  PROBE_PORT,
  type ServiceHosts,
} from '#test/network/service-hosts.ts';
import { type Loose, startTestApi, type TestApi } from '#test/support/test-api.ts';

const NODE = { name: 'system:node:node-1', groups: ['system:nodes', 'system:authenticated'] };
const MERGE = 'application/merge-patch+json';
const KEY = 'abcd1234';
const DEADLINE_MS = 10_000;

let hosts: ServiceHosts;
let api: TestApi;
let routing: ServiceRouting;
let dir: string;
const stopping = new AbortController();

const address = (text: string) => {
  const { family, value } = parseIpAddress(text);
  return { family, value };
};

before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'selfsame-services-'));
  hosts = await createServiceHosts();
  api = await startTestApi();
  const reader = createClient(createInProcessTransport({ handler: api.core.handler, user: NODE, userAgent: 'test' }));
  const parts = { reader, clock: systemClock, log: silentLog };
  const services = new Informer({ type: ROUTED_SERVICES, ...parts });
  const slices = new Informer({ type: ROUTED_SLICES, ...parts });
  const nodes = new Informer({ type: HOST_NODES, ...parts });
  const { signal } = stopping;
  for (const informer of [services, slices, nodes]) void informer.start({ signal });
  for (const informer of [services, slices, nodes]) await informer.waitForSync();
  routing = startServiceRouting({
    ...{ services, slices, nodes, nodeName: 'node-1', clock: systemClock, log: silentLog, signal },
    rules: nftRuleSets([...hosts.enterHost, 'nft']),
    hostsDir: (key) => join(dir, key),
  });
  routing.setNetwork({
    key: KEY,
    subnets: [parseIpNetwork('10.244.0.0/16'), parseIpNetwork('fd00:10:244::/64')],
    gateways: [address(GATEWAY), address('fd00:10:244::1')],
  });
  for (const n of [1, 2, 3]) await addGuest(n);
  await routing.idle();
  await hosts.startDnsmasq(join(dir, KEY));
});
after(async () => {
  await routing?.stop();
  stopping.abort();
  await api?.stop();
  await hosts?.close();
  if (dir !== undefined) await rm(dir, { recursive: true });
});

async function addGuest(n: number): Promise<void> {
  const spec = {
    containers: [{ name: 'compute', image: 'x' }],
    nodeName: 'node-1',
    hostname: `vm-${n}`,
    subdomain: 'named',
  };
  const metadata = { name: `guest-${n}`, labels: { guest: String(n), app: n === 1 ? 'client' : 'web' } };
  await api.ok('POST', '/api/v1/namespaces/default/pods', { body: { apiVersion: 'v1', kind: 'Pod', metadata, spec } });
  await setReady(n, true);
}

async function setReady(n: number, isReady: boolean): Promise<void> {
  const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
  const status = { phase: 'Running', podIP: guestIp(n), podIPs: [{ ip: guestIp(n) }, { ip: guestIp6(n) }], conditions };
  await api.ok('PATCH', `/api/v1/namespaces/default/pods/guest-${n}/status`, { body: { status }, contentType: MERGE });
}

async function expose(name: string, spec: Loose): Promise<Loose> {
  const ports = [
    { name: 'tcp', port: 80, targetPort: PROBE_PORT },
    { name: 'udp', port: 80, targetPort: PROBE_PORT, protocol: 'UDP' },
  ];
  const body = { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec: { ports, ...spec } };
  return (await api.ok('POST', '/api/v1/namespaces/default/services', { body })).spec;
}

/** Repeats a question until the answer is as expected; returns the last answer. */
async function until(ask: () => Promise<string>, expected: RegExp): Promise<string> {
  const deadline = systemClock.elapsed() + DEADLINE_MS;
  for (;;) {
    const text = await ask();
    if (expected.test(text) || systemClock.elapsed() > deadline) return text;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

for (const isOn of [true, false]) {
  const mode = isOn ? 'on' : 'off';
  test(`br_netfilter ${mode}: guests, host and outside reach a Service`, async () => {
    await hosts.setBridgeFilter(isOn);
    const name = `web-${mode}`;
    const spec = await expose(name, {
      type: 'NodePort',
      selector: { app: 'web' },
      ipFamilyPolicy: 'RequireDualStack',
    });
    const [ip, ip6] = spec.clusterIPs as [string, string];
    const [{ nodePort }] = spec.ports;
    const one = hosts.guest(1);
    assert.match(await until(() => one.tcp(ip, 80), /^g[23] /), new RegExp(`^g[23] ${GATEWAY}$`));
    assert.match(await one.udp(ip, 80), /^g[23] /);
    assert.match(await one.tcp(ip6, 80), /^g[23] fd00:10:244::1$/);
    assert.match(await hosts.host.tcp(ip, 80), /^g[23] /);
    assert.match(await hosts.outside.tcp(HOST_OUTSIDE, nodePort), new RegExp(`^g[23] ${OUTSIDE}$`));
    assert.match(await hosts.host.tcp(HOST_OUTSIDE, nodePort), /^g[23] /);
    assert.match(await one.tcp(GATEWAY, nodePort), /^g[23] /);
  });

  test(`br_netfilter ${mode}: a guest reaches itself through its Service`, async () => {
    await hosts.setBridgeFilter(isOn);
    const { clusterIP } = await expose(`self-${mode}`, { selector: { guest: '1' } });
    assert.equal(await until(() => hosts.guest(1).tcp(clusterIP, 80), /^g1 /), `g1 ${GATEWAY}`);
  });
}

test('a node port is the only way from outside to a guest', async () => {
  assert.equal(await hosts.outside.tcp(guestIp(2), PROBE_PORT), 'timeout');
});

test('a Service whose endpoint is the host does not open the host for guests', async () => {
  const { clusterIP } = await expose('to-host', {});
  const metadata = { name: 'to-host-1', labels: { 'kubernetes.io/service-name': 'to-host' } };
  const ports = [{ name: 'tcp', port: PROBE_PORT }];
  const endpoints = [{ addresses: [HOST_OUTSIDE] }];
  await api.ok('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
    body: { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', metadata, addressType: 'IPv4', endpoints, ports },
  });
  assert.match(await until(() => hosts.host.tcp(clusterIP, 80), /^host /), /^host /, 'the Service works for the host');
  assert.equal(await hosts.guest(1).tcp(clusterIP, 80), 'timeout');
});

test('guests that are not ready leave the Service, and without guests it refuses connections', async () => {
  const { clusterIP, ports } = await expose('leaving', { type: 'NodePort', selector: { app: 'web' } });
  const one = hosts.guest(1);
  await until(() => one.tcp(clusterIP, 80), /^g3 /);
  await setReady(3, false);
  const settled = async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => one.tcp(clusterIP, 80)));
    return [...new Set(answers)].sort().join();
  };
  assert.equal(await until(settled, /^g2 [^,]*$/), `g2 ${GATEWAY}`);
  await setReady(2, false);
  assert.equal(await until(() => one.tcp(clusterIP, 80), /^ECONNREFUSED$/), 'ECONNREFUSED');
  assert.equal(await hosts.host.tcp(clusterIP, 80), 'ECONNREFUSED');
  assert.equal(await hosts.outside.tcp(HOST_OUTSIDE, ports[0].nodePort), 'ECONNREFUSED');
  await setReady(2, true);
  await setReady(3, true);
  assert.match(await until(() => one.tcp(clusterIP, 80), /^g[23] /), /^g[23] /);
});

test('with session affinity, a client stays with one guest', async () => {
  const { clusterIP } = await expose('sticky', { selector: { app: 'web' }, sessionAffinity: 'ClientIP' });
  const first = await until(() => hosts.guest(1).tcp(clusterIP, 80), /^g[23] /);
  const answers = await Promise.all(Array.from({ length: 20 }, () => hosts.guest(1).tcp(clusterIP, 80)));
  assert.match(first, /^g[23] /);
  assert.deepEqual([...new Set(answers)], [first]);
});

test('names of Services follow their addresses and end with them', async () => {
  const one = hosts.guest(1);
  const { clusterIPs } = await expose('dns', { selector: { app: 'web' }, ipFamilyPolicy: 'RequireDualStack' });
  const name = 'dns.default.svc.cluster.local';
  assert.equal(await until(() => one.dns(name), /^10\./), clusterIPs[0]);
  assert.equal(await one.dns(name, 'AAAA'), clusterIPs[1]);
  await expose('named', { clusterIP: 'None', selector: { app: 'web' } });
  const headless = 'named.default.svc.cluster.local';
  assert.equal(await until(() => one.dns(headless), /,/), `${guestIp(2)},${guestIp(3)}`);
  assert.equal(await one.dns(`vm-2.${headless}`), guestIp(2));
  await setReady(3, false);
  assert.equal(await until(() => one.dns(headless), /^[^,]*$/), guestIp(2));
  assert.equal(await one.dns(`vm-3.${headless}`), 'ENOTFOUND');
  await setReady(3, true);
  await api.ok('DELETE', '/api/v1/namespaces/default/services/dns');
  assert.equal(await until(() => one.dns(name), /^ENOTFOUND$/), 'ENOTFOUND');
});

test('a guest finds a Service by name and uses it', async () => {
  const { clusterIP } = await expose('by-name', { selector: { guest: '2' } });
  const found = await until(() => hosts.guest(1).dns('by-name.default.svc.cluster.local'), /^10\./);
  assert.equal(found, clusterIP);
  assert.match(await until(() => hosts.guest(1).tcp(found, 80), /^g2 /), /^g2 /);
});
