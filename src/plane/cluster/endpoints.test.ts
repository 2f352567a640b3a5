import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { after, before, test } from 'node:test';
import type { Client } from '#client/client.ts';
import { createInProcessTransport } from '#client/in-process.ts';
import { createClient } from '#client/rest-client.ts';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { LEASES } from '#kube/core-kinds.ts';
import { systemClock } from '#lib/clock.ts';
import { silentLog } from '#lib/log.ts';
import { writeEndpoints } from '#plane/cluster/endpoints.ts';
import { MemberTracker, leaseName, MEMBER_LABEL } from '#plane/cluster/members.ts';
import { ADMIN, startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let client: Client;
const listener = createServer();
const open = { port: 0 };
before(async () => {
  api = await startTestApi({});
  client = createClient(createInProcessTransport({ handler: api.core.handler, user: ADMIN, userAgent: 'test' }));
  const metadata = { name: 'selfsame-system' };
  await api.ok('POST', '/api/v1/namespaces', { body: { apiVersion: 'v1', kind: 'Namespace', metadata } });
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  open.port = (listener.address() as AddressInfo).port;
});
after(async () => {
  listener.close();
  await api.stop();
});

async function member(id: string, port: number, renewed = '2030-01-01T00:00:00.000000Z'): Promise<void> {
  const annotations = { 'selfsame.io/address': '127.0.0.1', 'selfsame.io/port': String(port) };
  await client.apply(
    LEASES,
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...leaseName(id), labels: { [MEMBER_LABEL]: 'controllers' }, annotations },
      spec: { holderIdentity: id, leaseDurationSeconds: 15, renewTime: renewed },
    },
    { fieldManager: 'test', force: true },
  );
}

const write = (members: MemberTracker, id = 'me') =>
  writeEndpoints(
    { client, id, services: ['hooks'], clock: systemClock, log: silentLog },
    members,
    new AbortController().signal,
  );
const names = async (path: string) =>
  (await api.ok('GET', path)).items.map((item: { metadata: { name: string } }) => item.metadata.name) as string[];
const slices = () => names('/apis/discovery.k8s.io/v1/namespaces/selfsame-system/endpointslices');
const leases = () => names('/apis/coordination.k8s.io/v1/namespaces/selfsame-system/leases');

test('a live process has its slice, and the next write of any process removes the slice of a dead one', async () => {
  await member('me', 1);
  await member('other', open.port);
  await write(new MemberTracker(systemClock));
  assert.deepEqual(await slices(), ['hooks-me', 'hooks-other'], 'a process does not probe itself');
  // The port of the first process is closed, as after kill -9.
  await write(new MemberTracker(systemClock), 'other');
  assert.deepEqual(await slices(), ['hooks-other']);
  assert.deepEqual(await leases(), ['selfsame-controllers-other']);
});

test('a process that listens but has not renewed its Lease is removed', async () => {
  const clock = new FakeClock();
  const members = new MemberTracker(clock);
  await member('stale', open.port);
  await write(members);
  assert.ok((await slices()).includes('hooks-stale'));
  await clock.advance(14_000);
  await member('other', open.port, '2030-01-01T00:00:14.000000Z');
  await write(members);
  assert.ok((await slices()).includes('hooks-stale'));
  await clock.advance(2000);
  await write(members);
  assert.deepEqual(await slices(), ['hooks-other']);
});

test('two processes can write at the same time', async () => {
  await member('third', open.port);
  await Promise.all([write(new MemberTracker(systemClock), 'other'), write(new MemberTracker(systemClock), 'third')]);
  assert.deepEqual(await slices(), ['hooks-other', 'hooks-third']);
});
