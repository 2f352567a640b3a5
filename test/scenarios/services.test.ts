/** Services get addresses, node ports and EndpointSlices as on a Kubernetes cluster. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { openMemoryStore } from '#engine/store/testing/memory-store.ts';
import { type Loose, startTestApi, type TestApi, type TestApiOptions } from '#test/support/test-api.ts';

const SERVICES = '/api/v1/namespaces/default/services';
const SLICES = '/apis/discovery.k8s.io/v1/namespaces/default/endpointslices';
const PODS = '/api/v1/namespaces/default/pods';
const MERGE = 'application/merge-patch+json';

interface ServiceScene extends TestApi {
  /** Creates a Service; returns the response. */
  expose(name: string, spec: Loose, query?: string): Promise<Loose>;
  addPod(name: string, pod: Loose): Promise<void>;
  setPodStatus(name: string, status: Loose): Promise<void>;
  /** Returns the endpoints of a Service in all its slices, when everything is settled. */
  endpoints(name: string): Promise<Loose[]>;
  slices(name: string): Promise<Loose[]>;
}

async function startScene(t: TestContext, options: TestApiOptions = {}): Promise<ServiceScene> {
  const api = await startTestApi(options);
  t.after(() => api.stop());
  const slices = async (name: string) => {
    await api.settle();
    const { items } = await api.ok('GET', `${SLICES}?labelSelector=kubernetes.io/service-name=${name}`);
    return items;
  };
  const scene: ServiceScene = {
    ...api,
    slices,
    expose: async (name, spec, query = '') => {
      const body = { apiVersion: 'v1', kind: 'Service', metadata: { name }, spec };
      return (await api.call('POST', `${SERVICES}${query}`, { body })).body;
    },
    async addPod(name, { labels, spec = {}, status }) {
      const containers = [{ name: 'main', image: 'x', ports: spec.ports ?? [] }];
      const { ports: _, ...more } = spec;
      const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, labels }, spec: { containers, ...more } };
      await api.ok('POST', PODS, { body });
      if (status !== undefined) await scene.setPodStatus(name, status);
    },
    async setPodStatus(name, status) {
      await api.ok('PATCH', `${PODS}/${name}/status`, { body: { status }, contentType: MERGE });
    },
    async endpoints(name) {
      return (await slices(name)).flatMap(({ endpoints = [] }: Loose) => endpoints);
    },
  };
  return scene;
}

const ready = (...ips: string[]) => ({
  phase: 'Running',
  podIP: ips[0],
  podIPs: ips.map((ip) => ({ ip })),
  conditions: [{ type: 'Ready', status: 'True' }],
});
const unready = (ip: string) => ({ ...ready(ip), conditions: [{ type: 'Ready', status: 'False' }] });
const ports = [{ port: 80 }];

test('a Service gets an address, which cannot change and is free again after its deletion', async (t) => {
  const api = await startScene(t);
  const { spec } = await api.expose('web', { ports, clusterIP: '10.96.0.50' });
  assert.deepEqual(
    { ...spec, ports: undefined },
    {
      clusterIP: '10.96.0.50',
      clusterIPs: ['10.96.0.50'],
      internalTrafficPolicy: 'Cluster',
      ipFamilies: ['IPv4'],
      ipFamilyPolicy: 'SingleStack',
      ports: undefined,
      sessionAffinity: 'None',
      type: 'ClusterIP',
    },
  );
  const second = await api.expose('second', { ports, clusterIP: '10.96.0.50' });
  assert.equal(second.code, 422);
  assert.equal(
    second.message,
    'Service "second" is invalid: spec.clusterIPs: Invalid value: ["10.96.0.50"]: failed to allocate IP 10.96.0.50: provided IP is already allocated',
  );
  const moved = await api.call('PATCH', `${SERVICES}/web`, {
    body: { spec: { clusterIP: '10.96.0.51' } },
    contentType: MERGE,
  });
  assert.equal(
    moved.body.message,
    'Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.96.0.51"]: may not change once set',
  );
  await api.ok('DELETE', `${SERVICES}/web`);
  assert.equal((await api.expose('second', { ports, clusterIP: '10.96.0.50' })).spec.clusterIP, '10.96.0.50');
});

test('an update that names neither address nor node port keeps both', async (t) => {
  const api = await startScene(t);
  const made = await api.expose('web', { type: 'NodePort', ports: [{ name: 'web', port: 80 }] });
  const replaced = await api.ok('PUT', `${SERVICES}/web`, {
    body: {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { type: 'NodePort', ports: [{ name: 'web', port: 81 }] },
    },
  });
  assert.equal(replaced.spec.clusterIP, made.spec.clusterIP);
  assert.equal(replaced.spec.ports[0].nodePort, made.spec.ports[0].nodePort);
  const internal = await api.ok('PATCH', `${SERVICES}/web`, {
    body: { spec: { type: 'ClusterIP' } },
    contentType: MERGE,
  });
  assert.equal(internal.spec.ports[0].nodePort, undefined);
  assert.equal(internal.spec.externalTrafficPolicy, undefined);
  const named = await api.ok('PATCH', `${SERVICES}/web`, {
    body: { spec: { type: 'ExternalName', externalName: 'example.org' } },
    contentType: MERGE,
  });
  assert.equal(named.spec.clusterIP, undefined);
  assert.equal(named.spec.ipFamilies, undefined);
});

test('Services that are created at the same time never share an address or a node port', async (t) => {
  const api = await startScene(t);
  const made = await Promise.all(
    Array.from({ length: 100 }, (_, i) => api.expose(`web-${i}`, { type: 'NodePort', ports })),
  );
  assert.equal(new Set(made.map(({ spec }) => spec.clusterIP)).size, 100);
  assert.equal(new Set(made.map(({ spec }) => spec.ports[0].nodePort)).size, 100);
});

test('of many Services that ask for one address and node port at the same time, one gets it', async (t) => {
  const api = await startScene(t);
  const wanted = { type: 'NodePort', clusterIP: '10.96.0.77', ports: [{ port: 80, nodePort: 30_077 }] };
  const made = await Promise.all(Array.from({ length: 20 }, (_, i) => api.expose(`web-${i}`, wanted)));
  assert.equal(made.filter(({ kind }) => kind === 'Service').length, 1);
  assert.equal(made.filter(({ code }) => code === 422).length, 19);
});

test('a dry run allocates nothing, and a refused Service keeps nothing', async (t) => {
  const api = await startScene(t);
  const wanted = { type: 'NodePort', clusterIP: '10.96.0.78', ports: [{ port: 80, nodePort: 30_078 }] };
  assert.equal((await api.expose('dry', wanted, '?dryRun=All')).spec.clusterIP, '10.96.0.78');
  assert.equal((await api.expose('UPPER', wanted)).code, 422);
  assert.equal((await api.expose('web', wanted)).kind, 'Service');
});

test('a Service that was stored without an address is served, and gets one with its next update', async (t) => {
  const store = await openMemoryStore();
  const old = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'old', namespace: 'default', uid: 'u' },
    spec: { type: 'ClusterIP', ports: [{ port: 80, targetPort: 80, protocol: 'TCP' }] },
  };
  await store.put({
    collection: 'services',
    id: 'default/old',
    expected: 0,
    encode: (revision) => encodeStored(old, revision),
  });
  const api = await startScene(t, { store });
  assert.equal((await api.ok('GET', `${SERVICES}/old`)).spec.clusterIP, undefined);
  const { spec } = await api.ok('PATCH', `${SERVICES}/old`, {
    body: { spec: { selector: { a: 'b' } } },
    contentType: MERGE,
  });
  assert.match(spec.clusterIP, /^10\.96\./);
});

test('endpoints follow the readiness of pods', async (t) => {
  const api = await startScene(t);
  await api.expose('web', { ports: [{ port: 80, targetPort: 'http' }], selector: { app: 'web' } });
  const named = { ports: [{ name: 'http', containerPort: 8080 }], nodeName: 'node-1' };
  await api.addPod('a', { labels: { app: 'web' }, spec: named, status: ready('10.244.0.5') });
  await api.addPod('b', { labels: { app: 'web' }, spec: named, status: unready('10.244.0.6') });
  await api.addPod('without-address', { labels: { app: 'web' }, spec: named });
  await api.addPod('other', { labels: { app: 'other' }, spec: named, status: ready('10.244.0.7') });
  const [slice, ...others] = await api.slices('web');
  assert.deepEqual(others, []);
  assert.equal(slice.metadata.labels['endpointslice.kubernetes.io/managed-by'], 'endpointslice-controller.k8s.io');
  assert.equal(slice.addressType, 'IPv4');
  assert.deepEqual(slice.ports, [{ name: '', protocol: 'TCP', port: 8080 }]);
  const conditionsOf = (list: Loose[]) => list.map(({ addresses, conditions }) => [addresses[0], conditions.ready]);
  assert.deepEqual(conditionsOf(slice.endpoints), [
    ['10.244.0.5', true],
    ['10.244.0.6', false],
  ]);
  assert.equal(slice.endpoints[0].nodeName, 'node-1');
  assert.equal(slice.endpoints[0].targetRef.name, 'a');
  await api.setPodStatus('b', ready('10.244.0.6'));
  await api.setPodStatus('a', { phase: 'Succeeded' });
  assert.deepEqual(conditionsOf(await api.endpoints('web')), [['10.244.0.6', true]]);
  await api.ok('DELETE', `${SERVICES}/web`);
  assert.deepEqual(await api.slices('web'), []);
});

test('a Service of two families has a slice for each of them', async (t) => {
  const api = await startScene(t);
  await api.expose('web', { ports, selector: { app: 'web' }, ipFamilyPolicy: 'RequireDualStack' });
  await api.addPod('a', { labels: { app: 'web' }, status: ready('10.244.0.5', 'fd00:10:244::5') });
  const slices = await api.slices('web');
  const found = Object.fromEntries(slices.map(({ addressType, endpoints }) => [addressType, endpoints[0].addresses]));
  assert.deepEqual(found, { IPv4: ['10.244.0.5'], IPv6: ['fd00:10:244::5'] });
});

test('the slices of a Service without selector are left alone', async (t) => {
  const api = await startScene(t);
  await api.expose('manual', { ports });
  await api.ok('POST', SLICES, {
    body: {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'manual-1', labels: { 'kubernetes.io/service-name': 'manual' } },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['192.0.2.1'] }],
      ports: [{ port: 80 }],
    },
  });
  assert.deepEqual(
    (await api.slices('manual')).map(({ metadata }) => metadata.name),
    ['manual-1'],
  );
});

test('a Service of type LoadBalancer gets the addresses of the nodes only if that is enabled', async (t) => {
  const node = {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-1' },
    status: { addresses: [{ type: 'InternalIP', address: '192.0.2.10' }] },
  };
  const [disabled, enabled] = [await startScene(t), await startScene(t, { loadBalancer: true })];
  for (const api of [disabled, enabled]) {
    await api.ok('POST', '/api/v1/nodes', { body: node });
    await api.expose('web', { type: 'LoadBalancer', ports });
    await api.expose('same-port', { type: 'LoadBalancer', ports });
    await api.settle();
  }
  const ingressOf = async (api: ServiceScene, name: string) =>
    (await api.ok('GET', `${SERVICES}/${name}`)).status.loadBalancer.ingress;
  assert.equal(await ingressOf(disabled, 'web'), undefined);
  const both = [await ingressOf(enabled, 'web'), await ingressOf(enabled, 'same-port')];
  assert.deepEqual(
    both.filter((ingress) => ingress !== undefined),
    [[{ ip: '192.0.2.10', ipMode: 'VIP' }]],
  );
});

test('NetworkPolicies, which nothing would enforce, are not served', async (t) => {
  const api = await startScene(t, { controllers: false });
  const { status } = await api.call('POST', '/apis/networking.k8s.io/v1/namespaces/default/networkpolicies', {
    body: {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'deny' },
      spec: { podSelector: {} },
    },
  });
  assert.equal(status, 404);
});
