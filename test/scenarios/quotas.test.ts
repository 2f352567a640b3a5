/** ResourceQuotas and LimitRanges are enforced as Kubernetes enforces them. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { LocalServices } from '#engine/remote/local-services.ts';
import { type Loose, startTestApi, type TestApi, type TestApiOptions } from '#test/support/test-api.ts';
import { buildReviewAnswer, jsonPatch } from '#test/support/webhook-server.ts';

const NAMESPACE = '/api/v1/namespaces/tenant';

const KINDS: Record<string, string> = {
  configmaps: 'ConfigMap',
  limitranges: 'LimitRange',
  persistentvolumeclaims: 'PersistentVolumeClaim',
  pods: 'Pod',
  resourcequotas: 'ResourceQuota',
  secrets: 'Secret',
  services: 'Service',
};

interface QuotaScene extends TestApi {
  /** Creates a quota with these hard limits and waits for its status. */
  quota(hard: Record<string, string>, more?: Loose): Promise<void>;
  create(plural: string, object: Loose, query?: string): Promise<{ status: number; message: string; body: Loose }>;
  used(): Promise<Loose>;
}

async function startQuotaScene(t: TestContext, options: TestApiOptions = {}): Promise<QuotaScene> {
  const api = await startTestApi(options);
  t.after(() => api.stop());
  await api.ok('POST', '/api/v1/namespaces', {
    body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'tenant' } },
  });
  const create: QuotaScene['create'] = async (plural, object, query = '') => {
    const typed = { apiVersion: 'v1', kind: KINDS[plural], ...object };
    const { status, body } = await api.call('POST', `${NAMESPACE}/${plural}${query}`, { body: typed });
    return { status, message: body.message ?? '', body };
  };
  return {
    ...api,
    create,
    async quota(hard, more = {}) {
      const made = await create('resourcequotas', { metadata: { name: 'small' }, spec: { hard, ...more } });
      assert.equal(made.status, 201, made.message);
      await api.settle();
    },
    async used() {
      await api.settle();
      return (await api.ok('GET', `${NAMESPACE}/resourcequotas/small`)).status.used;
    },
  };
}

const aPod = (name: string, resources: Loose = {}, spec: Loose = {}) => ({
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'x', resources }], ...spec },
});
const aClaim = (name: string, storage: string, storageClassName?: string) => ({
  metadata: { name },
  spec: { accessModes: ['ReadWriteOnce'], storageClassName, resources: { requests: { storage } } },
});
const aService = (name: string, type: string) => ({ metadata: { name }, spec: { type, ports: [{ port: 80 }] } });

test('a pod beyond the quota is refused with the message of Kubernetes', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '2', 'requests.cpu': '1', 'limits.memory': '1Gi' });
  const asks = { requests: { cpu: '600m' }, limits: { cpu: '1', memory: '512Mi' } };
  assert.equal((await scene.create('pods', aPod('a', asks))).status, 201);
  assert.deepEqual(await scene.create('pods', aPod('b', asks)).then(({ status, message }) => [status, message]), [
    403,
    'pods "b" is forbidden: exceeded quota: small, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1',
  ]);
  assert.deepEqual(await scene.used(), { pods: '1', 'requests.cpu': '600m', 'limits.memory': '512Mi' });
});

test('each container must name the resources that a quota limits', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ 'limits.cpu': '2', memory: '1Gi' });
  const spec = { containers: ['compute', 'log'].map((name) => ({ name, image: 'x' })) };
  const { message } = await scene.create('pods', { metadata: { name: 'a' }, spec });
  assert.equal(
    message,
    'pods "a" is forbidden: failed quota: small: must specify limits.cpu for: compute,log; memory for: compute,log',
  );
});

test('of many simultaneous requests only as many pass as fit', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '3', 'count/configmaps': '5' });
  const made = await Promise.all(Array.from({ length: 12 }, (_, i) => scene.create('pods', aPod(`p${i}`))));
  assert.equal(made.filter(({ status }) => status === 201).length, 3);
  const maps = await Promise.all(
    Array.from({ length: 12 }, (_, i) => scene.create('configmaps', { metadata: { name: `c${i}` } })),
  );
  // One of the five is kube-root-ca.crt.
  assert.equal(maps.filter(({ status }) => status === 201).length, 4);
  assert.deepEqual(await scene.used(), { pods: '3', 'count/configmaps': '5' });
});

test('deleted and finished pods are free again', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '1' });
  await scene.create('pods', aPod('a'));
  assert.equal((await scene.create('pods', aPod('b'))).status, 403);
  const status = { phase: 'Succeeded' };
  const contentType = 'application/merge-patch+json';
  await scene.ok('PATCH', `${NAMESPACE}/pods/a/status`, { body: { status }, contentType });
  assert.deepEqual(await scene.used(), { pods: '0' });
  assert.equal((await scene.create('pods', aPod('b'))).status, 201);
  await scene.ok('DELETE', `${NAMESPACE}/pods/b?gracePeriodSeconds=0`);
  assert.equal((await scene.create('pods', aPod('c'))).status, 201);
});

test('claims count by number, size and class, and cannot grow beyond the quota', async (t) => {
  const scene = await startQuotaScene(t);
  const gold = 'gold.storageclass.storage.k8s.io';
  await scene.quota({
    persistentvolumeclaims: '3',
    'requests.storage': '10Gi',
    [`${gold}/requests.storage`]: '4Gi',
    [`${gold}/persistentvolumeclaims`]: '1',
  });
  assert.equal((await scene.create('persistentvolumeclaims', aClaim('a', '3Gi', 'gold'))).status, 201);
  const second = await scene.create('persistentvolumeclaims', aClaim('b', '2Gi', 'gold'));
  assert.equal(
    second.message,
    `persistentvolumeclaims "b" is forbidden: exceeded quota: small, requested: ${gold}/persistentvolumeclaims=1,${gold}/requests.storage=2Gi, used: ${gold}/persistentvolumeclaims=1,${gold}/requests.storage=3Gi, limited: ${gold}/persistentvolumeclaims=1,${gold}/requests.storage=4Gi`,
  );
  assert.match(
    (await scene.create('persistentvolumeclaims', aClaim('b', '100Ti', 'silver'))).message,
    /exceeded quota: small, requested: requests.storage=100Ti, used: requests.storage=3Gi, limited: requests.storage=10Gi$/,
  );
  const allowed = {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'gold' },
    provisioner: 'x',
    allowVolumeExpansion: true,
  };
  await scene.ok('POST', '/apis/storage.k8s.io/v1/storageclasses', { body: allowed });
  const status = { phase: 'Bound' };
  const contentType = 'application/merge-patch+json';
  await scene.ok('PATCH', `${NAMESPACE}/persistentvolumeclaims/a/status`, { body: { status }, contentType });
  const grow = (storage: string) =>
    scene.call('PATCH', `${NAMESPACE}/persistentvolumeclaims/a`, {
      body: { spec: { resources: { requests: { storage } } } },
      contentType,
    });
  assert.match((await grow('5Gi')).body.message, /exceeded quota: small, requested: gold.*=2Gi, used: gold.*=3Gi/);
  assert.equal((await grow('4Gi')).status, 200);
  assert.equal((await scene.used())['requests.storage'], '4Gi');
});

test('objects of any kind can be counted, custom ones included', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.ok('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
    body: {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'gadgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'gadgets', kind: 'Gadget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    },
  });
  await scene.settle();
  await scene.quota({ 'count/gadgets.example.com': '1', 'count/jobs.batch': '0', secrets: '0' });
  const gadgets = '/apis/example.com/v1/namespaces/tenant/gadgets';
  const gadget = (name: string) => ({ apiVersion: 'example.com/v1', kind: 'Gadget', metadata: { name } });
  await scene.ok('POST', gadgets, { body: gadget('a') });
  assert.equal(
    (await scene.call('POST', gadgets, { body: gadget('b') })).body.message,
    'gadgets.example.com "b" is forbidden: exceeded quota: small, requested: count/gadgets.example.com=1, used: count/gadgets.example.com=1, limited: count/gadgets.example.com=1',
  );
  assert.match((await scene.create('secrets', { metadata: { name: 's' } })).message, /requested: secrets=1/);
  const apply = `${gadgets}/c?fieldManager=me`;
  const applied = await scene.call('PATCH', apply, { body: gadget('c'), contentType: 'application/apply-patch+yaml' });
  assert.equal(applied.status, 403);
});

test('a quota with scopes counts only the pods in them', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '1' }, { scopes: ['BestEffort'] });
  assert.equal((await scene.create('pods', aPod('a'))).status, 201);
  assert.equal((await scene.create('pods', aPod('b'))).status, 403);
  const asks = { requests: { cpu: '1' } };
  assert.equal((await scene.create('pods', aPod('c', asks))).status, 201);
  const matchExpressions = [{ scopeName: 'PriorityClass', operator: 'In', values: ['high'] }];
  const high = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: 'high' }, value: 10 };
  await scene.ok('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', { body: high });
  const quota = { metadata: { name: 'urgent' }, spec: { hard: { pods: '0' }, scopeSelector: { matchExpressions } } };
  await scene.create('resourcequotas', quota);
  assert.match(
    (await scene.create('pods', aPod('d', asks, { priorityClassName: 'high' }))).message,
    /exceeded quota: urgent, requested: pods=1, used: pods=0, limited: pods=0/,
  );
  assert.deepEqual(await scene.used(), { pods: '1' });
});

test('a pod that gets a deadline enters the scope of another quota', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '0' }, { scopes: ['Terminating'] });
  await scene.create('pods', aPod('a'));
  const { body } = await scene.call('PATCH', `${NAMESPACE}/pods/a`, {
    body: { spec: { activeDeadlineSeconds: 5 } },
    contentType: 'application/merge-patch+json',
  });
  assert.match(body.message, /exceeded quota: small, requested: pods=1/);
});

test('services count by type, also when the type changes', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ services: '2', 'services.nodeports': '1', 'services.loadbalancers': '0' });
  assert.match((await scene.create('services', aService('lb', 'LoadBalancer'))).message, /services.loadbalancers=1/);
  assert.equal((await scene.create('services', aService('a', 'NodePort'))).status, 201);
  assert.equal((await scene.create('services', aService('b', 'ClusterIP'))).status, 201);
  const { body } = await scene.call('PATCH', `${NAMESPACE}/services/b`, {
    body: { spec: { type: 'NodePort' } },
    contentType: 'application/merge-patch+json',
  });
  assert.match(body.message, /exceeded quota: small, requested: services.nodeports=1, used: services.nodeports=1/);
});

test('a dry run is checked and not counted', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '1' });
  assert.equal((await scene.create('pods', aPod('a'), '?dryRun=All')).status, 201);
  assert.equal((await scene.create('pods', aPod('a'))).status, 201);
  assert.equal((await scene.create('pods', aPod('b'), '?dryRun=All')).status, 403);
});

test('a quota that shrinks below the use refuses more and deletes nothing', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ pods: '2' });
  for (const name of ['a', 'b']) await scene.create('pods', aPod(name));
  await scene.ok('PATCH', `${NAMESPACE}/resourcequotas/small`, {
    body: { spec: { hard: { pods: '1' } } },
    contentType: 'application/merge-patch+json',
  });
  assert.match((await scene.create('pods', aPod('c'))).message, /requested: pods=1, used: pods=2, limited: pods=1/);
  assert.deepEqual(await scene.used(), { pods: '2' });
});

test('a LimitRange sets default requests and limits and says so', async (t) => {
  const scene = await startQuotaScene(t);
  const limits = [{ type: 'Container', default: { cpu: '500m', memory: '256Mi' }, defaultRequest: { cpu: '100m' } }];
  await scene.create('limitranges', { metadata: { name: 'usual' }, spec: { limits } });
  const { body } = await scene.create('pods', aPod('a', { limits: { memory: '1Gi' } }));
  assert.deepEqual(body.spec.containers[0].resources, {
    limits: { memory: '1Gi', cpu: '500m' },
    requests: { memory: '1Gi', cpu: '100m' },
  });
  assert.equal(
    body.metadata.annotations['kubernetes.io/limit-ranger'],
    'LimitRanger plugin set: cpu request for container main; cpu limit for container main',
  );
});

test('a LimitRange refuses what is outside of its limits', async (t) => {
  const scene = await startQuotaScene(t);
  const limits = [
    { type: 'Container', min: { cpu: '100m' }, max: { cpu: '1' }, maxLimitRequestRatio: { cpu: '2' } },
    { type: 'Pod', max: { memory: '1Gi' } },
    { type: 'PersistentVolumeClaim', min: { storage: '1Gi' }, max: { storage: '10Gi' } },
  ];
  assert.equal((await scene.create('limitranges', { metadata: { name: 'l' }, spec: { limits } })).status, 201);
  const refusals: [string, Loose, string][] = [
    [
      'pods',
      aPod('a', { requests: { cpu: '50m' }, limits: { cpu: '2', memory: '1Gi' } }),
      'pods "a" is forbidden: [minimum cpu usage per Container is 100m, but request is 50m, maximum cpu usage per Container is 1, but limit is 2, cpu max limit to request ratio per Container is 2, but provided ratio is 40.000000]',
    ],
    [
      'pods',
      aPod('a', { limits: { cpu: '2', memory: '1Gi' } }),
      'pods "a" is forbidden: maximum cpu usage per Container is 1, but limit is 2',
    ],
    [
      'pods',
      aPod('a', { requests: { cpu: '300m' }, limits: { cpu: '900m', memory: '1Gi' } }),
      'pods "a" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000',
    ],
    [
      'pods',
      aPod('a', { limits: { cpu: '1' } }),
      'pods "a" is forbidden: maximum memory usage per Pod is 1Gi.  No limit is specified',
    ],
    [
      'persistentvolumeclaims',
      aClaim('c', '11Gi'),
      'persistentvolumeclaims "c" is forbidden: maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi',
    ],
    [
      'persistentvolumeclaims',
      aClaim('c', '1Mi'),
      'persistentvolumeclaims "c" is forbidden: minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi',
    ],
  ];
  for (const [plural, object, message] of refusals) {
    assert.equal((await scene.create(plural, object)).message, message);
  }
  assert.equal((await scene.create('pods', aPod('ok', { limits: { cpu: '1', memory: '1Gi' } }))).status, 201);
});

test('a pod cannot get room from a quota by a negative amount', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ 'requests.memory': '1Gi' });
  const asks = { requests: { memory: '512Mi' } };
  const refusals: [Loose, string][] = [
    [
      { overhead: { memory: '-100Gi' } },
      'spec.overhead.limits[memory]: Invalid value: "-100Gi": must be greater than or equal to 0',
    ],
    [
      { resources: { requests: { memory: '-100Gi' } } },
      'spec.resources.requests[memory]: Invalid value: "-100Gi": must be greater than or equal to 0',
    ],
  ];
  for (const [spec, message] of refusals) {
    const { status, message: got } = await scene.create('pods', aPod('a', asks, spec));
    assert.deepEqual([status, got], [422, `Pod "a" is invalid: ${message}`]);
  }
  assert.equal((await scene.create('pods', aPod('a', asks))).status, 201);
  assert.deepEqual(await scene.used(), { 'requests.memory': '512Mi' });
});

test('a new pod has neither an overhead nor a RuntimeClass: there is no such kind', async (t) => {
  const scene = await startQuotaScene(t);
  const refusals: [Loose, string][] = [
    [{ overhead: { memory: '1Mi' } }, 'Pod Overhead set without corresponding RuntimeClass defined Overhead'],
    [{ runtimeClassName: 'gvisor' }, 'RuntimeClass "gvisor" not found'],
  ];
  for (const [spec, message] of refusals) {
    const { status, message: got } = await scene.create('pods', aPod('a', {}, spec));
    assert.deepEqual([status, got], [403, `pods "a" is forbidden: pod rejected: ${message}`]);
  }
});

test('a limit of a whole pod counts as its request if nothing else requests it', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ 'requests.memory': '1Gi' });
  const spec = { resources: { limits: { memory: '2Gi' } } };
  assert.match((await scene.create('pods', aPod('a', {}, spec))).message, /exceeded quota: .*requests.memory=2Gi/);
});

test('ephemeral containers, which no quota counts, are not part of a new pod and have no resources', async (t) => {
  const scene = await startQuotaScene(t);
  const debug = { name: 'debug', image: 'x', resources: { requests: { memory: '100Gi' } } };
  const { status, message } = await scene.create('pods', aPod('a', {}, { ephemeralContainers: [debug] }));
  assert.equal(status, 422);
  assert.match(message, /ephemeralContainers: Forbidden: cannot be set on create/);
  assert.match(message, /ephemeralContainers\[0\].resources: Forbidden: cannot be set for an Ephemeral Container/);
});

test('a claim does not leave the quota of its storage class', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ 'gold.storageclass.storage.k8s.io/requests.storage': '10Gi' });
  await scene.create('persistentvolumeclaims', aClaim('a', '8Gi', 'gold'));
  const annotations = { 'volume.beta.kubernetes.io/storage-class': 'other' };
  for (const path of ['', '/status']) {
    const { status, body } = await scene.call('PATCH', `${NAMESPACE}/persistentvolumeclaims/a${path}`, {
      body: { metadata: { annotations } },
      contentType: 'application/merge-patch+json',
    });
    assert.equal(status, 422, path);
    const why =
      'metadata.annotations.volume.beta.kubernetes.io/storage-class: Invalid value: "other": field is immutable';
    assert.equal(body.message, `PersistentVolumeClaim "a" is invalid: ${why}`);
  }
  assert.match((await scene.create('persistentvolumeclaims', aClaim('b', '8Gi', 'gold'))).message, /exceeded quota/);
});

test('the allocated resources in the status of a claim count, also when they change', async (t) => {
  const scene = await startQuotaScene(t);
  await scene.quota({ 'requests.storage': '10Gi' });
  await scene.create('persistentvolumeclaims', aClaim('a', '8Gi'));
  const report = (storage: string) =>
    scene.call('PATCH', `${NAMESPACE}/persistentvolumeclaims/a/status`, {
      body: { status: { allocatedResources: { storage } } },
      contentType: 'application/merge-patch+json',
    });
  assert.match((await report('20Gi')).body.message, /exceeded quota: small, requested: requests.storage=12Gi/);
  assert.equal((await report('9Gi')).status, 200);
  assert.deepEqual(await scene.used(), { 'requests.storage': '9Gi' });
});

test('a container that a webhook adds gets the defaults of a LimitRange', async (t) => {
  const services = new LocalServices();
  const container = { name: 'proxy', image: 'x' };
  services.register('ns', 'hook', {
    review: async (_path, review) =>
      buildReviewAnswer(review, jsonPatch({ op: 'add', path: '/spec/containers/-', value: container })),
  });
  const scene = await startQuotaScene(t, { services });
  const webhook = {
    ...{ name: 'hook.golden.local', admissionReviewVersions: ['v1'], sideEffects: 'None' },
    clientConfig: { service: { namespace: 'ns', name: 'hook' } },
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['*'], resources: ['pods'] }],
  };
  const metadata = { name: 'hook' };
  const body = { ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'MutatingWebhookConfiguration' }, metadata };
  await scene.ok('POST', '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', {
    body: { ...body, webhooks: [webhook] },
  });
  await scene.settle();
  const limits = [{ type: 'Container', defaultRequest: { cpu: '100m' } }];
  await scene.create('limitranges', { metadata: { name: 'usual' }, spec: { limits } });
  const { body: pod } = await scene.create('pods', aPod('a'));
  assert.deepEqual(
    pod.spec.containers.map(({ name, resources }: Loose) => [name, resources]),
    [
      ['main', { requests: { cpu: '100m' } }],
      ['proxy', { requests: { cpu: '100m' } }],
    ],
  );
});
