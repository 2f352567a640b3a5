/**
 * Versions, subresources and collections of a custom kind as webhooks see them, and configurations of earlier versions.
 */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { encodeStored } from '#engine/encoding/stored-object.ts';
import { aGadget, gadgetCrd, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';
import { jsonPatch, startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts';

const VALIDATING = 'validatingwebhookconfigurations';
const MUTATING = 'mutatingwebhookconfigurations';
const CONFIGS = '/apis/admissionregistration.k8s.io/v1';
const BETA = GADGETS.replace('/v1/', '/v1beta1/');

let api: TestApi;
let server: WebhookServer;
const installed: string[] = [];

before(async () => {
  server = await startWebhookServer();
  api = await startTestApi();
  const crd = gadgetCrd();
  const [v1] = crd.spec.versions;
  const scale = { specReplicasPath: '.spec.size', statusReplicasPath: '.status.size' };
  v1.subresources = { status: {}, scale };
  crd.spec.versions.push({ ...v1, name: 'v1beta1', storage: false });
  await installGadgets(api, crd);
});
after(async () => {
  await api.stop();
  await server.stop();
});
afterEach(async () => {
  for (const path of installed.splice(0)) await api.ok('DELETE', path);
  await api.ok('DELETE', GADGETS);
  server.reviews.length = 0;
});

function aConfiguration(plural: string, overrides: Loose = {}): Loose {
  const rule = { operations: ['*'], apiGroups: ['golden.local'], apiVersions: ['*'], resources: ['gadgets'] };
  const webhook = {
    name: 'hook.golden.local',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { url: `${server.url}/hook`, caBundle: server.caBundle },
    ...overrides,
    rules: [{ ...rule, ...overrides.rule }],
  };
  delete webhook.rule;
  return {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: plural === MUTATING ? 'MutatingWebhookConfiguration' : 'ValidatingWebhookConfiguration',
    metadata: { name: 'config' },
    webhooks: [webhook],
  };
}

async function install(plural: string, overrides: Loose = {}): Promise<void> {
  await api.ok('POST', `${CONFIGS}/${plural}`, { body: aConfiguration(plural, overrides) });
  installed.push(`${CONFIGS}/${plural}/config`);
}

const webhookRequests = () => server.reviews.map(({ review }) => review.request);

test('with matchPolicy Equivalent a webhook gets the version of its rule, and the client its own', async () => {
  server.answer('/hook', ({ operation }) =>
    operation === 'CREATE' ? jsonPatch({ op: 'add', path: '/spec/note', value: 'seen' }) : {},
  );
  await install(MUTATING, { rule: { apiVersions: ['v1beta1'] } });
  const body = await api.ok('POST', GADGETS, { body: aGadget('one') });
  const [request] = webhookRequests();
  assert.deepEqual(request.kind, { group: 'golden.local', version: 'v1beta1', kind: 'Gadget' });
  assert.deepEqual(request.resource, { group: 'golden.local', version: 'v1beta1', resource: 'gadgets' });
  assert.equal(request.requestKind.version, 'v1');
  assert.equal(request.requestResource.version, 'v1');
  assert.equal(request.object.apiVersion, 'golden.local/v1beta1');
  assert.deepEqual([body.apiVersion, body.spec.note], ['golden.local/v1', 'seen']);
  await api.ok('DELETE', `${GADGETS}/one`);
  assert.equal(webhookRequests()[1].oldObject.apiVersion, 'golden.local/v1beta1');
});

test('with matchPolicy Exact a webhook does not get other versions', async () => {
  server.answer('/hook', () => ({}));
  await install(VALIDATING, { matchPolicy: 'Exact', rule: { apiVersions: ['v1beta1'] } });
  await api.ok('POST', GADGETS, { body: aGadget('one') });
  assert.equal(server.reviews.length, 0);
  await api.ok('POST', BETA, { body: { ...aGadget('two'), apiVersion: 'golden.local/v1beta1' } });
  assert.equal(server.reviews.length, 1);
});

test('an update contains both objects, a status update names its subresource', async () => {
  server.answer('/hook', () => ({}));
  await api.ok('POST', GADGETS, { body: aGadget('one') });
  await install(VALIDATING, { rule: { operations: ['UPDATE'], resources: ['gadgets/*'] } });
  await api.ok('PATCH', `${GADGETS}/one`, { body: { spec: { size: 4 } } });
  await api.ok('PATCH', `${GADGETS}/one/status`, { body: { status: { size: 4 } } });
  await api.ok('PATCH', `${GADGETS}/one/scale`, { body: { spec: { replicas: 5 } } });
  const [whole, status, scale] = webhookRequests();
  assert.deepEqual([whole.oldObject.spec.size, whole.object.spec.size], [3, 4]);
  assert.equal(whole.options.kind, 'PatchOptions');
  assert.equal('subResource' in whole, false);
  assert.deepEqual([status.subResource, status.requestSubResource, status.object.status.size], ['status', 'status', 4]);
  assert.deepEqual(scale.kind, { group: 'autoscaling', version: 'v1', kind: 'Scale' });
  assert.deepEqual([scale.resource.resource, scale.object.spec.replicas], ['gadgets', 5]);
});

test('deleting a collection calls the webhook for each object', async () => {
  server.answer('/hook', ({ name }) => ({ allowed: name !== 'held' }));
  for (const name of ['held', 'one', 'two']) await api.ok('POST', GADGETS, { body: aGadget(name) });
  await install(VALIDATING, { rule: { operations: ['DELETE'] } });
  const { status } = await api.call('DELETE', GADGETS);
  assert.equal(status, 400);
  const { items } = await api.ok('GET', GADGETS);
  assert.ok(items.some(({ metadata }: Loose) => metadata.name === 'held'));
  assert.ok(webhookRequests().some(({ name, operation }) => name === 'held' && operation === 'DELETE'));
});

test('a new version of the kind is matched as soon as it is served', async () => {
  server.answer('/hook', () => ({}));
  await install(VALIDATING, { matchPolicy: 'Exact', rule: { apiVersions: ['v2'] } });
  await api.ok('POST', GADGETS, { body: aGadget('one') });
  assert.equal(server.reviews.length, 0);
  const definition = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';
  const { spec } = await api.ok('GET', definition);
  const [v1] = spec.versions;
  await api.ok('PATCH', definition, {
    body: { spec: { versions: [...spec.versions, { ...v1, name: 'v2', storage: false }] } },
  });
  const created = { ...aGadget('two'), apiVersion: 'golden.local/v2' };
  await api.ok('POST', GADGETS.replace('/v1/', '/v2/'), { body: created });
  assert.equal(server.reviews.length, 1);
});

test('a webhook with side effects is not called in a dry run', async () => {
  // The API no longer accepts such a configuration; an earlier version may have stored one.
  server.answer('/hook', () => ({}));
  const collection = `${VALIDATING}.admissionregistration.k8s.io`;
  const object = aConfiguration(VALIDATING, { sideEffects: 'Some', admissionReviewVersions: ['v1beta1'] });
  const put = { collection, id: 'config', expected: 0, encode: (revision: number) => encodeStored(object, revision) };
  await api.store.put(put);
  installed.push(`${CONFIGS}/${VALIDATING}/config`);
  const { status, body } = await api.call('POST', `${GADGETS}?dryRun=All`, { body: aGadget('one') });
  assert.deepEqual(
    [status, body.reason, body.message],
    [400, 'BadRequest', 'admission webhook "hook.golden.local" does not support dry run'],
  );
  assert.equal(server.reviews.length, 0);
  await api.ok('POST', GADGETS, { body: aGadget('one') });
  assert.equal(server.reviews[0]!.review.apiVersion, 'admission.k8s.io/v1beta1', 'in the version that it supports');
});
