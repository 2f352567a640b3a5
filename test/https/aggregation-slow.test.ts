/** Aggregated APIs that take too long, on a fake clock: each wait has its own limit. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { after, before, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { sendJson, startExtensionServer, type ExtensionServer } from '#test/support/extension-server.ts';
import { startFrontServer, type FrontServer } from '#test/support/front-server.ts';
import { sendHttp1Request } from '#test/support/raw-https.ts';
import type { Scope } from '#test/support/server-process.ts';

const clock = new FakeClock();
let front: FrontServer;
let server: ExtensionServer;
/** Accepts connections and never sends anything. */
let mute: Server;
const cleanups: (() => void)[] = [];
const scope: Scope = { after: (fn) => cleanups.push(fn) };

before(async () => {
  front = await startFrontServer(scope, { clock });
  server = await startExtensionServer({ hosts: ['slow.golden.svc', 'renewed.golden.svc'], clientCa: front.caPem });
  mute = createServer();
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  await front.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } });
  await install('slow', server.port);
  await install('mute', (mute.address() as AddressInfo).port);
});
after(async () => {
  await front.stop();
  await server.stop();
  mute.close();
  cleanups.forEach((cleanup) => cleanup());
});

async function install(name: string, port: number): Promise<void> {
  await front.create('/api/v1/namespaces/golden/services', {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: 'golden' },
    spec: { externalIPs: ['127.0.0.1'], ports: [{ port }] },
  });
  const group = `${name}.local`;
  const service = { namespace: 'golden', name, port };
  const priorities = { groupPriorityMinimum: 1000, versionPriority: 15 };
  await front.create('/apis/apiregistration.k8s.io/v1/apiservices', {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name: `v1.${group}` },
    spec: { group, version: 'v1', service, caBundle: server.caBundle, ...priorities },
  });
}

test('a request without an answer fails after a minute', async () => {
  const reached = new Promise<void>((resolve) => server.on('/apis/slow.local/v1/things', () => resolve()));
  const answer = sendHttp1Request(front.admin, { path: '/apis/slow.local/v1/things' });
  await reached;
  await clock.advance(60_000);
  const { status, text } = await answer;
  assert.deepEqual(
    [status, text],
    [503, 'error trying to reach service: net/http: timeout awaiting response headers\n'],
  );
});

test('a connection without a TLS handshake fails after ten seconds', async () => {
  const taken = once(mute, 'connection');
  const answer = sendHttp1Request(front.admin, { path: '/apis/mute.local/v1/things' });
  await taken;
  await clock.advance(10_000);
  const { status, text } = await answer;
  assert.equal(status, 503);
  assert.match(text, /^error trying to reach service: dial tcp 127.0.0.1:\d+: i\/o timeout\n$/);
});

test('an incomplete answer fails after a minute', async () => {
  const reached = new Promise<void>((resolve) => {
    server.on('/apis/slow.local/v1/things', (_, response) => {
      response.writeHead(200, { 'content-length': '10' });
      response.write('12345', () => resolve());
    });
  });
  const answer = sendHttp1Request(front.admin, { path: '/apis/slow.local/v1/things' });
  await reached;
  await clock.advance(120_000);
  const { status, text } = await answer;
  assert.equal(status, 503);
  // How much of the answer has arrived depends on the network.
  assert.match(text, /^error trying to reach service: net\/http: (?:request canceled while reading body|timeout)/);
});

test('a check of a server that does not answer times out, and the next check succeeds', async () => {
  const path = '/apis/slow.local/v1';
  const reached = new Promise<void>((resolve) => server.on(path, () => resolve()));
  const { signal } = new AbortController();
  const checking = front.core.aggregation.check('v1.slow.local', { signal });
  await reached;
  await clock.advance(5000);
  const url = `https://127.0.0.1:${server.port}${path}`;
  const why = 'context deadline exceeded (Client.Timeout exceeded while awaiting headers)';
  assert.deepEqual(await checking, {
    status: 'False',
    reason: 'FailedDiscoveryCheck',
    message: `failing or missing response from ${url}: Get "${url}": ${why}`,
  });
  server.on(path, (_, response) => sendJson(response, { kind: 'APIResourceList', resources: [] }));
  assert.deepEqual(await front.core.aggregation.check('v1.slow.local', { signal }), {
    status: 'True',
    reason: 'Passed',
    message: 'all checks passed',
  });
});

test('a running request completes although the CA bundle changes', async () => {
  const path = '/apis/renewed.local/v1/things';
  await install('renewed', server.port);
  const reached = new Promise<ServerResponse>((resolve) => server.on(path, (_, response) => resolve(response)));
  const answer = sendHttp1Request(front.admin, { path });
  const response = await reached;
  const name = '/apis/apiregistration.k8s.io/v1/apiservices/v1.renewed.local';
  const twice = Buffer.from(server.caBundle, 'base64').toString().repeat(2);
  const changed = await sendHttp1Request(front.admin, {
    method: 'PATCH',
    path: name,
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify({ spec: { caBundle: Buffer.from(twice).toString('base64') } }),
  });
  assert.equal(changed.status, 200, changed.text);
  sendJson(response, { kind: 'ThingList', items: [] });
  const { status, text } = await answer;
  assert.deepEqual([status, JSON.parse(text)], [200, { kind: 'ThingList', items: [] }]);
});
