/** Changes that happen while a request waits for a webhook are taken into account before anything is written. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { LocalServices } from '#engine/remote/local-services.ts';
import { aGadget, gadgetCrd, GADGETS, installCrd } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const NAMESPACES = '/api/v1/namespaces';
const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const HOOKS = '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations';

/** Runs in the webhook before it answers; set by each test. */
let meanwhile: (review: Loose) => Promise<void> = async () => {};
let api: TestApi;

const services = new LocalServices();

before(async () => {
  services.register('kube-system', 'waiting', {
    async review(_, review) {
      const { request } = review as Loose;
      await meanwhile(request);
      return {
        apiVersion: 'admission.k8s.io/v1',
        kind: 'AdmissionReview',
        response: { uid: request.uid, allowed: true },
      };
    },
  });
  api = await startTestApi({ services });
  await api.settle();
  await api.ok('POST', HOOKS, { body: configuration() });
});
after(() => api.stop());

function configuration(): Loose {
  const rule = { apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['secrets'] };
  const clientConfig = { service: { namespace: 'kube-system', name: 'waiting', path: '/' } };
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'waiting' },
    webhooks: [
      {
        name: 'waiting.golden.local',
        clientConfig,
        rules: [rule],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  };
}

async function namespace(name: string): Promise<void> {
  await api.ok('POST', NAMESPACES, { body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name } } });
  await api.settle();
}

const secret = (name: string, data: Loose = {}): Loose => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name },
  stringData: data,
});

test('nothing is created in a namespace whose deletion began while a webhook was called', async () => {
  await namespace('leaving');
  meanwhile = async () => {
    meanwhile = async () => {};
    await api.ok('DELETE', `${NAMESPACES}/leaving`);
  };
  const { status, body } = await api.call('POST', `${NAMESPACES}/leaving/secrets`, { body: secret('late') });
  assert.ok(status === 403 || status === 404, JSON.stringify(body));
  await api.settle();
  assert.equal(api.store.latest('secrets', 'leaving/late'), undefined);
});

test('a patch that another write overtakes during the webhook call is applied again to the new state', async () => {
  await namespace('busy');
  const url = `${NAMESPACES}/busy/secrets/one`;
  await api.ok('POST', `${NAMESPACES}/busy/secrets`, { body: secret('one', { a: '1' }) });
  const seen: Loose[] = [];
  meanwhile = async (request) => {
    seen.push(request.oldObject.data);
    if (seen.length === 1) await api.ok('PATCH', url, { body: { stringData: { b: '2' } } });
  };
  const { data } = await api.ok('PATCH', url, { body: { stringData: { c: '3' } } });
  meanwhile = async () => {};
  assert.deepEqual(Object.keys(data).sort(), ['a', 'b', 'c']);
  assert.deepEqual(Object.keys(seen.at(-1)).sort(), ['a', 'b'], 'the webhook reviewed the new state');
});

test('a PUT with a revision that another write overtakes is a conflict', async () => {
  await namespace('strict');
  const url = `${NAMESPACES}/strict/secrets/one`;
  const created = await api.ok('POST', `${NAMESPACES}/strict/secrets`, { body: secret('one', { a: '1' }) });
  let first = true;
  meanwhile = async () => {
    if (!first) return;
    first = false;
    await api.ok('PATCH', url, { body: { stringData: { b: '2' } } });
  };
  const { status } = await api.call('PUT', url, { body: { ...created, stringData: { c: '3' } } });
  meanwhile = async () => {};
  assert.equal(status, 409);
});

test('a delete that a write overtakes is reviewed with the new state', async () => {
  await namespace('guarded');
  const url = `${NAMESPACES}/guarded/secrets/one`;
  await api.ok('POST', `${NAMESPACES}/guarded/secrets`, { body: secret('one') });
  const seen: Loose[] = [];
  meanwhile = async ({ operation, oldObject }) => {
    if (operation !== 'DELETE') return;
    seen.push(oldObject.metadata.labels);
    if (seen.length === 1) await api.ok('PATCH', url, { body: { metadata: { labels: { keep: 'yes' } } } });
  };
  await api.ok('DELETE', url);
  meanwhile = async () => {};
  assert.deepEqual(seen, [undefined, { keep: 'yes' }]);
});

test('an object is not written with the schema of a definition that was replaced during the webhook call', async () => {
  const crd = gadgetCrd();
  await installCrd(api, crd);
  await namespace('golden');
  const hook = configuration();
  hook.metadata.name = hook.webhooks[0].name = 'gadgets.golden.local';
  hook.webhooks[0].rules[0] = { apiGroups: ['golden.local'], apiVersions: ['*'], operations: ['*'], resources: ['*'] };
  await api.ok('POST', HOOKS, { body: hook });
  meanwhile = async () => {
    meanwhile = async () => {};
    await api.ok('DELETE', `${CRDS}/gadgets.golden.local`);
    await api.settle();
    crd.spec.scope = 'Cluster';
    await installCrd(api, crd);
  };
  const { status, body } = await api.call('POST', GADGETS, { body: aGadget('late') });
  assert.equal(status, 409, JSON.stringify(body));
  assert.equal(api.store.count('gadgets.golden.local'), 0);
});

test('a webhook can write no more than the client: neither the status with the spec, nor the spec with the status', async () => {
  const name = 'meddler';
  services.register('kube-system', name, {
    async review(_, review) {
      const { uid, subResource = '' } = (review as Loose).request;
      const path = subResource === 'status' ? '/spec' : '/status';
      const patch = Buffer.from(JSON.stringify([{ op: 'add', path, value: { size: 9, meddled: true } }]));
      const response = { uid, allowed: true, patchType: 'JSONPatch', patch: patch.toString('base64') };
      return { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', response };
    },
  });
  const crd = gadgetCrd();
  crd.spec.group = 'silver.local';
  crd.metadata.name = 'gadgets.silver.local';
  await installCrd(api, crd);
  await namespace('silver');
  const url = '/apis/silver.local/v1/namespaces/silver/gadgets';
  const silverGadget = { ...aGadget('one', { size: 1 }), apiVersion: 'silver.local/v1' };
  await api.ok('POST', url, { body: silverGadget });
  const hook = configuration();
  hook.metadata.name = hook.webhooks[0].name = 'meddler.golden.local';
  hook.webhooks[0].clientConfig.service.name = name;
  hook.webhooks[0].rules[0] = {
    apiGroups: ['silver.local'],
    apiVersions: ['*'],
    operations: ['UPDATE'],
    resources: ['gadgets', 'gadgets/status'],
  };
  await api.ok('POST', HOOKS, { body: hook });
  const changed = await api.ok('PATCH', `${url}/one`, { body: { spec: { size: 2 } } });
  assert.deepEqual([changed.spec.size, changed.status], [2, undefined]);
  const response = await api.ok('PATCH', `${url}/one/status`, { body: { status: { fine: true } } });
  assert.deepEqual([response.spec.size, response.status, response.metadata.generation], [2, { fine: true }, 2]);
});
