import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { resolveService } from '#engine/remote/service-address.ts';
import { startTestApi, type TestApi } from '#test/support/test-api.ts';

let api: TestApi;
before(async () => {
  api = await startTestApi({});
  const service = (name: string, spec: object) =>
    api.ok('POST', '/api/v1/namespaces/default/services', {
      body: { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec },
    });
  const slice = (name: string, of: string, address: string, ready: boolean, port = 9443) =>
    api.ok('POST', '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices', {
      body: {
        apiVersion: 'discovery.k8s.io/v1',
        kind: 'EndpointSlice',
        metadata: { name, labels: { 'kubernetes.io/service-name': of } },
        addressType: 'IPv4',
        endpoints: [{ addresses: [address], conditions: { ready } }],
        ports: [{ name: 'https', port }],
      },
    });
  const ports = [{ name: 'https', port: 443 }];
  await service('sliced', { ports });
  await slice('sliced-a', 'sliced', '10.0.0.1', true);
  await slice('sliced-b', 'sliced', '10.0.0.2', false);
  await slice('sliced-c', 'sliced', '10.0.0.3', true, 9444);
  await slice('other-a', 'other', '10.0.0.4', true);
  await service('empty', { ports });
  await service('external', { ports, externalIPs: ['192.0.2.1'] });
});
after(() => api.stop());

const resolve = (name: string, pick: number) =>
  resolveService(api.store, { namespace: 'default', name, port: 443 }, () => pick);

test('a service resolves to its ready endpoints, each with its own port', () => {
  const [one, other] = [
    { host: '10.0.0.1', port: 9443 },
    { host: '10.0.0.3', port: 9444 },
  ];
  assert.deepEqual(resolve('sliced', 0), { servers: [one, other] });
  assert.deepEqual(resolve('sliced', 1), { servers: [other, one] });
});

test('an external address takes precedence, and a service without addresses is unresolved', () => {
  assert.deepEqual(resolve('external', 0), { servers: [{ host: '192.0.2.1', port: 443 }] });
  const nowhere = resolve('empty', 0);
  assert.equal('unresolved' in nowhere && nowhere.unresolved, 'MissingEndpoints');
});
