/** A full disk refuses what would grow the store, and still lets people delete. */
import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { LogStore } from '#engine/store/log-store.ts';
import { MemoryJournal } from '#engine/store/testing/memory-journal.ts';
import { ADMIN, startTestApi, type CallOptions, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
let journal: MemoryJournal;
const MAPS = '/api/v1/namespaces/default/configmaps';
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const map = (name: string, metadata: object = {}) => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata } },
});

/** Sends a request over the network, not from this process. */
const send = (method: string, url: string, options: CallOptions = {}) =>
  api.call(method, url, { sourceIp: '192.0.2.1', ...options });

beforeEach(async () => {
  journal = new MemoryJournal();
  api = await startTestApi({ store: await LogStore.open(journal) });
  await api.ok('POST', MAPS, { body: map('plain') });
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } },
  });
  await api.ok('POST', MAPS, { body: map('held', { finalizers: ['example.org/hold'] }) });
  await api.ok('POST', LEASES, {
    body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'n' } },
  });
  await api.settle();
  journal.isSpaceScarce = true;
});
afterEach(async () => {
  journal.isSpaceScarce = false;
  await api.stop();
});

test('a full disk refuses creates and changes of users, and says what to do', async () => {
  const created = await send('POST', MAPS, { body: map('new') });
  assert.equal(created.status, 507);
  assert.equal(created.body.reason, 'InsufficientStorage');
  assert.match(created.body.message, /its disk is almost full; delete objects or free space$/);
  assert.equal(created.headers['retry-after'], '1');
  assert.equal((await send('PATCH', `${MAPS}/plain`, { body: { data: { a: 'b' } } })).status, 507);
  assert.equal((await send('GET', `${MAPS}/plain`)).status, 200);
});

test('a full disk still lets people delete, with finalizers and whole collections', async () => {
  assert.equal((await send('DELETE', `${MAPS}/held`)).status, 200);
  assert.equal((await send('PATCH', `${MAPS}/held`, { body: { metadata: { finalizers: null } } })).status, 200);
  assert.equal((await send('GET', `${MAPS}/held`)).status, 404);
  assert.equal((await send('DELETE', MAPS)).status, 200);
  assert.equal((await send('GET', `${MAPS}/plain`)).status, 404);
  assert.equal((await send('DELETE', '/api/v1/namespaces/team')).status, 200);
  await api.settle();
  assert.equal((await send('GET', '/api/v1/namespaces/team')).status, 404);
});

test('an object under deletion does not use up the reserve', async () => {
  assert.equal((await send('DELETE', `${MAPS}/held`)).status, 200);
  const data = { a: 'x'.repeat(1024 * 1024) };
  assert.equal((await send('PATCH', `${MAPS}/held`, { body: { data } })).status, 507);
  assert.equal(
    (await send('PATCH', `${MAPS}/held`, { body: { data: { a: 'b' } } })).status,
    507,
    'nor by many changes',
  );
  const body = { data, metadata: { finalizers: null } };
  assert.equal((await send('PATCH', `${MAPS}/held`, { body })).status, 200, 'the last finalizer removes the object');
});

test('a node does not use up the reserve', async () => {
  const user = { name: 'system:node:n', groups: ['system:nodes', 'system:authenticated', 'system:masters'] };
  const body = { metadata: { annotations: { a: 'x'.repeat(200_000) } } };
  assert.equal((await send('PATCH', `${LEASES}/n`, { user, body })).status, 507);
});

test('an object under deletion does not grow beyond the limit of all objects', async () => {
  journal.isSpaceScarce = false;
  const metadata = { name: 'held', finalizers: ['example.org/hold'] };
  await send('POST', LEASES, { body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata } });
  assert.equal((await send('DELETE', `${LEASES}/held`)).status, 200);
  const body = { spec: { holderIdentity: 'x'.repeat(1_700_000) } };
  assert.equal((await send('PATCH', `${LEASES}/held`, { body })).status, 413);
});

test('a request without an address is not taken for one of this process', async () => {
  const request = { method: 'PATCH', path: `${MAPS}/plain`, query: new URLSearchParams(), user: ADMIN, accept: '' };
  const answer = await api.core.handler({
    ...{ ...request, contentType: 'application/merge-patch+json', userAgent: 'test' },
    body: async () => Buffer.from('{"data":{"a":"b"}}'),
    signal: new AbortController().signal,
  });
  assert.equal(answer.status, 507);
});

test('nodes renew their leases on a full disk', async () => {
  const user = { name: 'system:node:n', groups: ['system:nodes', 'system:authenticated', 'system:masters'] };
  assert.equal((await send('PATCH', `${LEASES}/n`, { user, body: { spec: { holderIdentity: 'n' } } })).status, 200);
});

test('writes succeed again when there is space', async () => {
  assert.equal((await send('POST', MAPS, { body: map('new') })).status, 507);
  journal.isSpaceScarce = false;
  assert.equal((await send('POST', MAPS, { body: map('new') })).status, 201);
});
