/** APIServices through the whole core: in this process and over HTTPS, in discovery, in OpenAPI, and their conditions. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import type { ApiRequest, ApiResponse } from '#engine/request/request.ts';
import { LocalServices } from '#engine/remote/local-services.ts';
import { sendJson, startExtensionServer, type ExtensionServer } from '#test/support/extension-server.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const API_SERVICES = '/apis/apiregistration.k8s.io/v1/apiservices';
const V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';

let api: TestApi;
let server: ExtensionServer;
const clock = new FakeClock();
const services = new LocalServices();
const installed: string[] = [];

before(async () => {
  server = await startExtensionServer({ hosts: ['ext.golden.svc'], clientCa: '' });
  api = await startTestApi({ services, clock });
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'golden' } },
  });
  const spec = { externalIPs: ['127.0.0.1'], ports: [{ port: server.port }] };
  await api.ok('POST', '/api/v1/namespaces/golden/services', {
    body: { apiVersion: 'v1', kind: 'Service', metadata: { name: 'ext' }, spec },
  });
  services.register('golden', 'local', { api: localApi });
});
after(async () => {
  await api.stop();
  await server.stop();
});
afterEach(async () => {
  for (const name of installed.splice(0)) await api.ok('DELETE', `${API_SERVICES}/${name}`);
  await settleAll();
});

/** Waits until documents are fetched and controllers have nothing left to do. */
async function settleAll(): Promise<void> {
  await api.settle();
  await api.core.aggregation.settled();
  await api.settle();
}

async function register(name: string, { service = {}, ...spec }: Loose = {}): Promise<void> {
  const [version, ...group] = name.split('.');
  const body = {
    apiVersion: 'apiregistration.k8s.io/v1',
    kind: 'APIService',
    metadata: { name },
    spec: {
      group: group.join('.'),
      version,
      groupPriorityMinimum: 1000,
      versionPriority: 15,
      service: { namespace: 'golden', name: 'ext', port: server.port, ...service },
      ...(service.name === undefined ? { caBundle: server.caBundle } : {}),
      ...spec,
    },
  };
  await api.ok('POST', API_SERVICES, { body });
  installed.push(name);
  await settleAll();
}

const LOCAL = { service: { name: 'local', port: 443 } };

const thing = {
  name: 'things',
  singularName: 'thing',
  namespaced: true,
  kind: 'Thing',
  verbs: ['get', 'list'],
  shortNames: ['th'],
};

function localApi({ path, user, method, query }: ApiRequest): ApiResponse {
  const json = (value: Loose, status = 200): ApiResponse => {
    return { status, contentType: 'application/json', body: Buffer.from(JSON.stringify(value)) };
  };
  if (path === '/apis/local.golden/v1') {
    const resources = [thing, { name: 'things/start', namespaced: true, kind: '', verbs: ['update'] }];
    return json({ kind: 'APIResourceList', apiVersion: 'v1', groupVersion: 'local.golden/v1', resources });
  }
  if (path.startsWith('/openapi') || path === '/apis') return json({}, 404);
  return json({ path, method, user: user.name, query: query.toString() });
}

const condition = async (name: string) => {
  const { status } = await api.ok('GET', `${API_SERVICES}/${name}`);
  const [{ lastTransitionTime: _, ...rest }] = status.conditions;
  return rest;
};

const listGroups = async (): Promise<Loose[]> => (await api.ok('GET', '/apis')).groups;
const findAggregatedGroup = async (group: string): Promise<Loose> => {
  const { items } = await api.ok('GET', '/apis', { accept: V2 });
  return items.find(({ metadata }: Loose) => metadata.name === group);
};

test("the engine's own groups have APIServices, as in Kubernetes", async () => {
  await settleAll();
  const { items } = await api.ok('GET', API_SERVICES);
  const shown = items.map(({ metadata, spec }: Loose) => [
    metadata.name,
    spec.groupPriorityMinimum,
    spec.versionPriority,
    metadata.labels['kube-aggregator.kubernetes.io/automanaged'],
  ]);
  for (const want of [
    ['v1.', 18_000, 1, 'onstart'],
    ['v1.batch', 17_400, 15, 'onstart'],
    ['v1.apiextensions.k8s.io', 16_700, 15, 'onstart'],
  ]) {
    assert.deepEqual(
      shown.find(([name]: string[]) => name === want[0]),
      want,
    );
  }
  assert.ok(!items.some(({ metadata }: Loose) => metadata.name === 'v1.apiregistration.k8s.io'));
  assert.deepEqual(await condition('v1.batch'), {
    type: 'Available',
    status: 'True',
    reason: 'Local',
    message: 'Local APIServices are always available',
  });
  const { rows } = await api.ok('GET', API_SERVICES, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
  assert.deepEqual(rows.find(({ cells }: Loose) => cells[0] === 'v1.batch').cells.slice(0, 3), [
    'v1.batch',
    'Local',
    'True',
  ]);
});

test('an APIService that was deleted or changed is restored; one of a custom kind follows its definition', async () => {
  await api.ok('DELETE', `${API_SERVICES}/v1.batch`);
  await api.ok('PATCH', `${API_SERVICES}/v1.policy`, { body: { spec: { versionPriority: 3 } } });
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'shelves.golden.local' },
    spec: {
      group: 'golden.local',
      scope: 'Namespaced',
      names: { plural: 'shelves', kind: 'Shelf' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
    },
  };
  const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
  await api.ok('POST', definitions, { body: crd });
  await settleAll();
  assert.equal((await condition('v1.batch')).status, 'True');
  assert.equal((await api.ok('GET', `${API_SERVICES}/v1.policy`)).spec.versionPriority, 15);
  const created = await api.ok('GET', `${API_SERVICES}/v1.golden.local`);
  assert.equal(created.metadata.labels['kube-aggregator.kubernetes.io/automanaged'], 'true');
  assert.deepEqual(created.spec, {
    group: 'golden.local',
    version: 'v1',
    groupPriorityMinimum: 1000,
    versionPriority: 100,
  });
  await api.ok('DELETE', `${definitions}/shelves.golden.local`);
  await settleAll();
  assert.equal((await api.call('GET', `${API_SERVICES}/v1.golden.local`)).status, 404);
});

test('an API in this process is called as a function with the requesting user', async () => {
  await register('v1.local.golden', LOCAL);
  assert.deepEqual(await condition('v1.local.golden'), {
    type: 'Available',
    status: 'True',
    reason: 'Passed',
    message: 'all checks passed',
  });
  const path = '/apis/local.golden/v1/namespaces/default/things/a/start';
  const answer = await api.ok('PUT', `${path}?force=true`);
  assert.deepEqual(answer, { path, method: 'PUT', user: 'admin', query: 'force=true' });
  assert.equal((await api.ok('GET', '/apis/local.golden/v1')).kind, 'APIResourceList');
  assert.deepEqual((await listGroups()).find(({ name }) => name === 'local.golden')?.preferredVersion, {
    groupVersion: 'local.golden/v1',
    version: 'v1',
  });
  assert.deepEqual((await findAggregatedGroup('local.golden')).versions, [
    {
      version: 'v1',
      resources: [
        {
          resource: 'things',
          responseKind: { group: '', version: '', kind: 'Thing' },
          scope: 'Namespaced',
          singularResource: 'thing',
          verbs: ['get', 'list'],
          shortNames: ['th'],
          subresources: [
            { subresource: 'start', responseKind: { group: '', version: '', kind: '' }, verbs: ['update'] },
          ],
        },
      ],
      freshness: 'Current',
    },
  ]);
});

test('a group disappears with its APIService', async () => {
  await register('v1.local.golden', LOCAL);
  await api.ok('DELETE', `${API_SERVICES}/${installed.pop()}`);
  await settleAll();
  assert.equal(await findAggregatedGroup('local.golden'), undefined);
  const { status, text } = await api.call('GET', '/apis/local.golden/v1/things');
  assert.deepEqual([status, text], [404, '404 page not found\n']);
});

test('priorities order groups and versions, and a group ranks as its highest version', async () => {
  await register('v1.local.golden', { ...LOCAL, groupPriorityMinimum: 10, versionPriority: 1 });
  await register('v2beta1.local.golden', { ...LOCAL, groupPriorityMinimum: 17_450, versionPriority: 20 });
  await register('v1.zz.golden', { ...LOCAL, groupPriorityMinimum: 20 });
  const groups = await listGroups();
  const names = groups.map(({ name }) => name);
  assert.equal(names[0], 'apiregistration.k8s.io');
  assert.equal(names.indexOf('local.golden') + 1, names.indexOf('batch'));
  assert.equal(names.at(-1), 'zz.golden');
  const { versions } = groups.find(({ name }) => name === 'local.golden');
  assert.deepEqual(
    versions.map(({ version }: Loose) => version),
    ['v2beta1', 'v1'],
  );
});

function describeExtension(group: string): void {
  const resources = [{ resource: 'boxes', scope: 'Cluster', singularResource: 'box', verbs: ['list'] }];
  const items = [{ metadata: { name: group }, versions: [{ version: 'v1', resources }] }];
  server.on('/apis', (_, response) => sendJson(response, { kind: 'APIGroupDiscoveryList', items }, V2));
  server.on(`/apis/${group}/v1`, (_, response) => sendJson(response, { kind: 'APIResourceList', resources: [] }));
  const path = `apis/${group}/v1`;
  server.on('/openapi/v3', (_, response) => {
    sendJson(response, { paths: { [path]: { serverRelativeURL: `/openapi/v3/${path}?hash=ABC` } } });
  });
  server.on(`/openapi/v3/${path}`, (_, response) => sendJson(response, { openapi: '3.0.0', info: { title: 'ext' } }));
  const ref = (name: string) => ({ $ref: `#/definitions/${name}` });
  const meta = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta';
  server.on('/openapi/v2', (_, response) => {
    sendJson(response, {
      swagger: '2.0',
      paths: {
        [`/${path}/boxes`]: {
          get: { operationId: 'listBoxes', responses: { 200: { description: 'OK', schema: ref('ext.Box') } } },
        },
        '/apis/elsewhere/v1/boxes': { get: { responses: {} } },
      },
      definitions: {
        'ext.Box': { type: 'object', properties: { metadata: ref(meta) } },
        [meta]: { type: 'object', description: 'another one' },
        'ext.Unused': { type: 'object' },
      },
    });
  });
}

test('a server over HTTPS appears in discovery and OpenAPI, with its own documents', async () => {
  describeExtension('ext.golden');
  await register('v1.ext.golden');
  assert.deepEqual((await findAggregatedGroup('ext.golden')).versions, [
    {
      version: 'v1',
      resources: [
        {
          resource: 'boxes',
          responseKind: { group: '', version: '', kind: '' },
          scope: 'Cluster',
          singularResource: 'box',
          verbs: ['list'],
        },
      ],
      freshness: 'Current',
    },
  ]);
  const { paths } = await api.ok('GET', '/openapi/v3');
  assert.deepEqual(paths['apis/ext.golden/v1'], { serverRelativeURL: '/openapi/v3/apis/ext.golden/v1?hash=ABC' });
  assert.ok(paths['api/v1'].serverRelativeURL.startsWith('/openapi/v3/api/v1?hash='));
  assert.equal((await api.ok('GET', '/openapi/v3/apis/ext.golden/v1?hash=ABC')).info.title, 'ext');
  const swagger = await api.ok('GET', '/openapi/v2');
  assert.equal(swagger.paths['/apis/ext.golden/v1/boxes'].get.operationId, 'listBoxes');
  assert.equal(swagger.paths['/apis/elsewhere/v1/boxes'], undefined);
  assert.equal(swagger.definitions['ext.Unused'], undefined);
  // We serve a different definition of that name, so theirs is renamed.
  const renamed = 'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta_v2';
  assert.equal(swagger.definitions[renamed].description, 'another one');
  assert.deepEqual(swagger.definitions['ext.Box'].properties.metadata, { $ref: `#/definitions/${renamed}` });
  const accept = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf';
  assert.equal((await api.call('GET', '/openapi/v2', { accept })).status, 200);
  const root = await api.ok('GET', '/');
  assert.ok(root.paths.includes('/apis/ext.golden/v1'));
});

test('a server that stops answering is Stale after a minute and keeps its last documents; other servers are not affected', async () => {
  describeExtension('ext.golden');
  await register('v1.ext.golden');
  await register('v1.local.golden', LOCAL);
  for (const path of ['/apis', '/apis/ext.golden/v1']) {
    server.on(path, (_, response) => void response.writeHead(500).end());
  }
  await clock.advance(60_000);
  await settleAll();
  const [stale] = (await findAggregatedGroup('ext.golden')).versions;
  assert.deepEqual([stale.freshness, stale.resources.length], ['Stale', 1]);
  const [current] = (await findAggregatedGroup('local.golden')).versions;
  assert.equal(current.freshness, 'Current');
});

const conditions: Record<string, { service: Loose; want: Loose }> = {
  'its Service does not exist': {
    service: { name: 'none' },
    want: { reason: 'ServiceNotFound', message: 'service/none in "golden" is not present' },
  },
  'its Service lacks the port': {
    service: { name: 'ext', port: 9 },
    want: { reason: 'ServicePortError', message: 'service/ext in "golden" is not listening on port 9' },
  },
};
for (const [name, { service, want }] of Object.entries(conditions)) {
  test(`not available if ${name}; requests are answered at once`, async () => {
    await register('v1.bad.golden', { service });
    assert.deepEqual(await condition('v1.bad.golden'), { type: 'Available', status: 'False', ...want });
    const { status, text } = await api.call('GET', '/apis/bad.golden/v1/things');
    assert.deepEqual([status, text], [503, 'service unavailable\n']);
  });
}

test('not available while its discovery fails, and available again without intervention', async () => {
  server.on('/apis/late.golden/v1', (_, response) => void response.writeHead(503).end());
  await register('v1.late.golden');
  const url = `https://127.0.0.1:${server.port}/apis/late.golden/v1`;
  const message = `failing or missing response from ${url}: bad status from ${url}: 503`;
  assert.deepEqual(await condition('v1.late.golden'), {
    type: 'Available',
    status: 'False',
    reason: 'FailedDiscoveryCheck',
    message,
  });
  const before = server.requests.length;
  assert.equal((await api.call('GET', '/apis/late.golden/v1/things')).status, 503);
  assert.equal(server.requests.length, before);
  server.on('/apis/late.golden/v1', (_, response) => sendJson(response, { kind: 'APIResourceList', resources: [] }));
  await clock.advance(2000);
  await settleAll();
  assert.equal((await condition('v1.late.golden')).reason, 'Passed');
});

test('the core group and the registration API cannot be taken over', async () => {
  await api.ok('PATCH', `${API_SERVICES}/v1.`, { body: { spec: { service: { namespace: 'golden', name: 'none' } } } });
  assert.equal((await api.call('GET', '/api/v1/namespaces')).status, 200);
  await settleAll();
  assert.equal((await api.ok('GET', `${API_SERVICES}/v1.`)).spec.service, undefined);
});

test('kube-system contains what aggregated servers need to authenticate requests', async () => {
  const path = '/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication';
  const { data } = await api.ok('GET', path);
  assert.deepEqual(Object.keys(data).sort(), [
    'client-ca-file',
    'requestheader-allowed-names',
    'requestheader-client-ca-file',
    'requestheader-extra-headers-prefix',
    'requestheader-group-headers',
    'requestheader-uid-headers',
    'requestheader-username-headers',
  ]);
  assert.equal(data['requestheader-allowed-names'], '["front-proxy-client"]');
});
