/** Requests that are large in one respect: their cost grows with their size, not with its square. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { defectOf } from '#test/fuzz/defects.ts';
import { startInProcessApi, type InProcessApi } from '#test/fuzz/in-process-api.ts';
import type { FuzzRequest } from '#test/fuzz/requests.ts';
import { isStall, longestTurn, stallsEachTime } from '#test/fuzz/stalls.ts';

const JSON_TYPE = 'application/json';
const YAML = 'application/yaml';
const MERGE = 'application/merge-patch+json';
const JSON_PATCH = 'application/json-patch+json';
const STRATEGIC = 'application/strategic-merge-patch+json';
const APPLY = 'application/apply-patch+yaml';
const MAPS = '/api/v1/namespaces/fuzz/configmaps';
const PODS = '/api/v1/namespaces/fuzz/pods';
const RICHES = '/apis/fuzz.local/v1/namespaces/fuzz/riches';
const HOOKS = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations';
const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';

const many = <T>(count: number, make: (index: number) => T) => Array.from({ length: count }, (_, index) => make(index));
const map = (metadata: object, more: object = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, ...more });
const pod = (name: string, spec: object) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec });
const env = (value: string) => many(4000, (index) => ({ name: `e${index}`, value }));
const withEnv = (name: string) => pod(name, { containers: [{ name: 'a', image: 'b', env: env('x') }] });
const hook = (admissionReviewVersions: readonly string[]) => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'h' },
  webhooks: [{ name: 'a.b.c', clientConfig: { url: 'https://x' }, sideEffects: 'None', admissionReviewVersions }],
});
const entry = (manager: string, field: string) => ({
  ...{ manager, operation: 'Update', apiVersion: 'v1', time: '2026-01-01T00:00:00Z' },
  ...{ fieldsType: 'FieldsV1', fieldsV1: { 'f:data': { [field]: {} } } },
});

type Case = readonly [method: string, url: string, contentType: string, body: unknown];

const cases: Record<string, Case> = {
  'YAML with an error at every character': ['POST', MAPS, YAML, `[${','.repeat(250_000)}]`],
  'YAML with lists in lists': ['POST', MAPS, YAML, '['.repeat(250_000)],
  'YAML with keys in keys': ['POST', MAPS, YAML, '? '.repeat(2000)],
  'YAML with aliases': ['POST', MAPS, YAML, many(10_000, (index) => `- &a${index} x\n- *a${index}\n`).join('')],
  'YAML with many items': ['POST', MAPS, YAML, '- 1\n'.repeat(60_000)],
  'YAML with more items than allowed': ['POST', MAPS, YAML, '- 1\n'.repeat(700_000)],
  'YAML with many keys': ['POST', MAPS, YAML, many(200_000, (index) => `k${index}: v\n`).join('')],
  'YAML with many duplicate keys': ['POST', `${MAPS}?fieldValidation=Strict`, YAML, 'a: 1\n'.repeat(200_000)],
  'YAML with many brackets in the column of their key': ['POST', MAPS, YAML, 'a: [\n]\n'.repeat(100_000)],
  'YAML with aliases of a long text': [
    'POST',
    MAPS,
    YAML,
    `a: &a ${'x'.repeat(1_000_000)}\nb: [${'*a,'.repeat(1000)}]`,
  ],
  'YAML with a long text': ['POST', MAPS, YAML, `data: {a: "${'\\n'.repeat(1_500_000)}"}`],
  'YAML with lists as keys of lists': [
    'POST',
    MAPS,
    YAML,
    `${'['.repeat(290)}${'a,'.repeat(200_000)}${']: b'.repeat(289)}]`,
  ],
  'an applied YAML with an error at every character': [
    'PATCH',
    `${MAPS}/a?fieldManager=f`,
    APPLY,
    `[${','.repeat(250_000)}]`,
  ],
  'JSON with lists in lists': ['POST', MAPS, JSON_TYPE, '['.repeat(1_000_000)],
  'JSON with duplicate fields': [
    'POST',
    `${MAPS}?fieldValidation=Strict`,
    JSON_TYPE,
    `{${'"a":1,'.repeat(50_000)}"b":1}`,
  ],
  'a JSON patch that doubles the object at each step': [
    ...(['PATCH', `${MAPS}/a`, JSON_PATCH] as const),
    many(40, (index) => ({ op: 'copy', from: '/data', path: `/data/c${index}` })),
  ],
  'a strategic patch of a long list': [
    'PATCH',
    `${PODS}/p?dryRun=All`,
    STRATEGIC,
    { spec: { containers: [{ name: 'a', env: env('y').reverse() }] } },
  ],
  'an applied long list': ['PATCH', `${PODS}/p?dryRun=All&fieldManager=f`, APPLY, withEnv('p')],
  'many owners of fields': [
    ...(['PATCH', `${MAPS}/a?dryRun=All`, MERGE] as const),
    { metadata: { managedFields: many(1500, (index) => entry(`m${index}`, `f:k${index}`)) } },
  ],
  'many finalizers': [
    'POST',
    `${MAPS}?dryRun=All`,
    JSON_TYPE,
    map({ name: 'b', finalizers: many(8000, (index) => `a.b/f${index}`) }),
  ],
  'many taints': [
    ...(['POST', '/api/v1/nodes?dryRun=All', JSON_TYPE] as const),
    {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: 'n' },
      spec: { taints: many(8000, (index) => ({ key: `k${index}`, effect: 'NoSchedule' })) },
    },
  ],
  'many containers': [
    'POST',
    `${PODS}?dryRun=All`,
    JSON_TYPE,
    pod('c', { containers: many(2000, (index) => ({ name: `c${index}`, image: 'i' })) }),
  ],
  'many versions of reviews': ['POST', `${HOOKS}?dryRun=All`, JSON_TYPE, hook(many(20_000, (index) => `v${index}`))],
  'many rules': [
    ...(['POST', `${ROLES}?dryRun=All`, JSON_TYPE] as const),
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'r' },
      rules: many(4000, (index) => ({ apiGroups: ['a'], resources: [`r${index}`], verbs: ['get'] })),
    },
  ],
  'a long list of a custom kind': [
    ...(['POST', `${RICHES}?dryRun=All`, JSON_TYPE] as const),
    {
      apiVersion: 'fuzz.local/v1',
      kind: 'Rich',
      metadata: { name: 'r' },
      spec: { parts: many(4000, (index) => ({ name: `p${index}` })) },
    },
  ],
  'a long number': [
    ...(['POST', '/api/v1/namespaces/fuzz/resourcequotas', JSON_TYPE] as const),
    { apiVersion: 'v1', kind: 'ResourceQuota', metadata: { name: 'q' }, spec: { hard: { pods: '9'.repeat(500_000) } } },
  ],
  'a long selector of labels': ['GET', `${MAPS}?labelSelector=${'a=b,'.repeat(10_000)}a=b`, '', ''],
  'a selector of labels with many values': ['GET', `${MAPS}?labelSelector=a%20in%20(${'b,'.repeat(20_000)}c)`, '', ''],
  'a long selector of fields': [
    'GET',
    `${MAPS}?fieldSelector=${'metadata.name=b,'.repeat(3000)}metadata.name=b`,
    '',
    '',
  ],
  'a long path': ['GET', `/api/v1/${'x/'.repeat(30_000)}`, '', ''],
};

let api: InProcessApi;

before(async () => {
  api = await startInProcessApi();
  await api.send(requestOf(['POST', MAPS, JSON_TYPE, map({ name: 'a' }, { data: { a: '1' } })]));
  await api.send(requestOf(['POST', PODS, JSON_TYPE, withEnv('p')]));
});

after(() => api.stop());

function requestOf([method, url, contentType, value]: Case): FuzzRequest {
  const body = Buffer.from(typeof value === 'string' ? value : JSON.stringify(value));
  return { method, url, contentType, accept: JSON_TYPE, body };
}

for (const [name, one] of Object.entries(cases)) {
  test(`${name}: answered in time`, async () => {
    const request = requestOf(one);
    const send = () => api.send(request);
    const { millis, result } = await longestTurn(send);
    assert.equal(defectOf(result), undefined);
    assert.deepEqual(api.takeErrors(), []);
    const stalls = isStall(millis) && (await stallsEachTime(send));
    assert.equal(stalls, false, `it took ${millis.toFixed(0)} ms for ${request.body.length} bytes`);
  });
}
