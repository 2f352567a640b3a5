/** Field owners while a mutating webhook reviews the object and another client writes or deletes it. */
import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { LocalServices } from '#engine/remote/local-services.ts';
import { GADGET, gadget, GADGETS, owners, startApplyScene, type ApplyScene } from '#test/scenarios/apply-scene.ts';
import type { Loose } from '#test/support/test-api.ts';
import { jsonPatch, buildReviewAnswer } from '#test/support/webhook-server.ts';

let api: ApplyScene;
/** Runs in the webhook at its next review; later reviews change nothing. */
let next: (() => Promise<Loose>) | undefined;

before(async () => {
  const services = new LocalServices();
  services.register('ns', 'hook', {
    async review(_path, review) {
      const act = next;
      next = undefined;
      return buildReviewAnswer(review, (await act?.()) ?? {});
    },
  });
  api = await startApplyScene({ services });
  const webhook = {
    name: 'hook.golden.local',
    admissionReviewVersions: ['v1'],
    sideEffects: 'None',
    clientConfig: { service: { namespace: 'ns', name: 'hook' } },
    rules: [{ operations: ['*'], apiGroups: ['golden.local'], apiVersions: ['*'], resources: ['gadgets'] }],
  };
  const body = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'MutatingWebhookConfiguration',
    metadata: { name: 'hook' },
    webhooks: [webhook],
  };
  await api.ok('POST', '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations', { body });
  await api.settle();
});
after(() => api.stop());
afterEach(() => api.call('DELETE', GADGET));

/** Makes another client write during the next review. */
function meanwhile(act: () => Promise<unknown>): void {
  next = async () => {
    await act();
    return {};
  };
}

test('fields that a webhook adds have no owner', async () => {
  next = async () => jsonPatch({ op: 'add', path: '/spec/size', value: 7 });
  const made = await api.applyOk('alice', GADGET, gadget({ color: 'red' }));
  assert.equal(made.spec.size, 7);
  assert.deepEqual(owners(made), { 'alice Apply': ['.spec.color'] });
});

test('fields without an owner stay when the applier empties their parent but still names it', async () => {
  next = async () => jsonPatch({ op: 'add', path: '/spec/size', value: 7 });
  await api.applyOk('alice', GADGET, gadget({ color: 'red' }));
  const less = await api.applyOk('alice', GADGET, gadget({}));
  assert.deepEqual(less.spec, { size: 7, mode: 'auto' });
  assert.deepEqual(await api.applyOk('alice', GADGET, gadget({})), less);
});

test('managedFields entries that a webhook wrote are read and stored in our form', async () => {
  const entry = { manager: 'hook', operation: 'Update', apiVersion: 'golden.local/v1', fieldsType: 'FieldsV1' };
  next = async () => jsonPatch({ op: 'add', path: '/metadata/managedFields/-', value: entry });
  await api.ok('POST', `${GADGETS}?fieldManager=alice`, { body: gadget({ color: 'red' }) });
  const changed = await api.merge('bob', GADGET, { spec: { size: 1 } });
  assert.deepEqual(owners(changed), {
    'alice Update': ['.spec', '.spec.color', '.spec.mode'],
    'bob Update': ['.spec.size'],
  });
});

test('an apply whose object is deleted meanwhile creates it again', async () => {
  const made = await api.applyOk('alice', GADGET, gadget({ color: 'red' }));
  meanwhile(() => api.ok('DELETE', GADGET));
  const recreated = await api.applyOk('alice', GADGET, gadget({ color: 'blue' }));
  assert.notEqual(recreated.metadata.uid, made.metadata.uid);
  assert.deepEqual(owners(recreated), { 'alice Apply': ['.spec.color'] });
});

test('an apply that another write overtakes is merged with that write', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red', size: 1 }));
  meanwhile(() => api.merge('bob', GADGET, { spec: { size: 2, replicas: 3 } }));
  const { status, body } = await api.apply('alice', GADGET, gadget({ color: 'blue', size: 1 }));
  assert.equal(status, 409);
  assert.match(body.message, /conflict with "bob" using golden.local\/v1: .spec.size/);
  meanwhile(() => api.merge('bob', GADGET, { spec: { replicas: 4 } }));
  const merged = await api.applyOk('alice', GADGET, gadget({ color: 'blue' }));
  assert.deepEqual(merged.spec, { color: 'blue', mode: 'auto', size: 2, replicas: 4 });
  assert.deepEqual(owners(merged), { 'alice Apply': ['.spec.color'], 'bob Update': ['.spec.replicas', '.spec.size'] });
});

test('a patch that another write overtakes is parsed again: nothing of the first attempt remains', async () => {
  await api.applyOk('alice', GADGET, gadget({ color: 'red' }));
  meanwhile(() => api.merge('bob', GADGET, { spec: { size: 2 } }));
  const body = { spec: { parts: [{ name: 'a', odd: 1 }] } };
  const url = `${GADGET}?fieldManager=carol&fieldValidation=Warn`;
  const { warnings, body: patched } = await api.call('PATCH', url, { body });
  assert.deepEqual(warnings, ['unknown field "spec.parts[0].odd"']);
  assert.deepEqual(Object.keys(owners(patched)), ['alice Apply', 'bob Update', 'carol Update']);
});
