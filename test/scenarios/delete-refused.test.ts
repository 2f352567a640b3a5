/** Protected objects stay, are reported, and do not prevent the deletion of others. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { FakeClock } from '#lib/testing/fake-clock.ts';
import { namespaceController } from '#engine/controllers/namespace/namespace.ts';
import { startEngineController } from '#test/crash/collector.ts';
import { createBareNamespace } from '#test/support/bare-namespace.ts';
import { aGadget, GADGETS, installGadgets } from '#test/support/gadgets.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const BINDINGS = `${ADMISSION}/validatingadmissionpolicybindings`;
const NAMESPACES = '/api/v1/namespaces';
const CRD = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gadgets.golden.local';

async function start(t: TestContext) {
  const clock = new FakeClock();
  const api = await startTestApi({ clock });
  t.after(() => api.stop());
  await installGadgets(api);
  return {
    api,
    /** Advances the clock step by step, so that each retry happens at its time. */
    async advance(seconds: number) {
      for (let i = 0; i < seconds * 10; i++) {
        await clock.advance(100);
        await api.settle();
      }
    },
  };
}

/** Forbids to delete objects of these resources whose names begin with `kept`. */
async function protect(api: TestApi, ...resources: string[]): Promise<void> {
  const rule = { apiGroups: ['*'], apiVersions: ['*'], operations: ['DELETE'], resources };
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'keep' },
    spec: {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: '!oldObject.metadata.name.startsWith("kept")', message: 'kept' }],
    },
  };
  await api.ok('POST', `${ADMISSION}/validatingadmissionpolicies`, { body: policy });
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'keep' },
    spec: { policyName: 'keep', validationActions: ['Deny'] },
  };
  await api.ok('POST', BINDINGS, { body: binding });
  await api.settle();
}

const createObjects = (api: TestApi, plural: string, kind: string, names: readonly string[]) =>
  Promise.all(
    names.map((name) =>
      api.ok('POST', `${NAMESPACES}/golden/${plural}`, { body: { apiVersion: 'v1', kind, metadata: { name } } }),
    ),
  );

const namesIn = async (api: TestApi, url: string): Promise<string[]> =>
  (await api.ok('GET', url)).items.map(({ metadata }: Loose) => metadata.name);

async function conditionOf(api: TestApi, url: string, wanted: string): Promise<string[]> {
  const { conditions } = (await api.ok('GET', url)).status;
  const { status, reason, message } = conditions.find(({ type }: Loose) => type === wanted);
  return [status, reason, message];
}

const refusal = (object: string) =>
  `${object} is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'keep' denied request: kept`;

test('deleting a namespace removes all objects except protected ones, reports those, and completes after the last one', async (t) => {
  const { api, advance } = await start(t);
  await protect(api, 'configmaps', 'secrets');
  // More objects than one batch deletes, and first in the order of names.
  const kept = Array.from({ length: 130 }, (_, i) => `kept-${String(i).padStart(3, '0')}`);
  await createObjects(api, 'configmaps', 'ConfigMap', [...kept, 'other', 'z-last']);
  await createObjects(api, 'secrets', 'Secret', ['a-first', 'kept', 'z-last']);
  await api.settle();
  await api.ok('DELETE', `${NAMESPACES}/golden`);
  await advance(2);
  assert.deepEqual(await namesIn(api, `${NAMESPACES}/golden/configmaps`), kept);
  assert.deepEqual(await namesIn(api, `${NAMESPACES}/golden/secrets`), ['kept']);
  assert.deepEqual(await namesIn(api, `${NAMESPACES}/golden/serviceaccounts`), []);
  assert.deepEqual(await conditionOf(api, `${NAMESPACES}/golden`, 'NamespaceDeletionContentFailure'), [
    'True',
    'ContentDeletionFailed',
    `Failed to delete all resource types, 2 remaining: ${refusal('configmaps "kept-000"')}, ${refusal('secrets "kept"')}`,
  ]);
  assert.deepEqual(await conditionOf(api, `${NAMESPACES}/golden`, 'NamespaceContentRemaining'), [
    'True',
    'SomeResourcesRemain',
    'Some resources are remaining: configmaps. has 130 resource instances, secrets. has 1 resource instances',
  ]);
  const revision = api.store.revision;
  await advance(3);
  assert.equal(api.store.revision, revision, 'a report is not repeated');

  await api.ok('DELETE', `${BINDINGS}/keep`);
  await advance(17);
  assert.equal((await api.call('GET', `${NAMESPACES}/golden`)).status, 404);
});

test('deleting a definition removes all objects except protected ones, reports those, and completes after the last one', async (t) => {
  const { api, advance } = await start(t);
  await protect(api, 'gadgets');
  for (const name of ['a', 'kept', 'z']) await api.ok('POST', GADGETS, { body: aGadget(name) });
  await api.ok('DELETE', CRD);
  await advance(1);
  assert.deepEqual(await namesIn(api, GADGETS), ['kept']);
  assert.deepEqual(await conditionOf(api, CRD, 'Terminating'), [
    'True',
    'InstanceDeletionFailed',
    `could not issue all deletes: ${refusal('gadgets.golden.local "kept"')}`,
  ]);
  const revision = api.store.revision;
  await advance(3);
  assert.equal(api.store.revision, revision, 'a report is not repeated');

  await api.ok('DELETE', `${BINDINGS}/keep`);
  await advance(17);
  assert.equal((await api.call('GET', CRD)).status, 404);
});

test('a namespace that waits for finalizers is checked less and less often', async (t) => {
  const clock = new FakeClock();
  const api = await startTestApi({ clock, controllers: false });
  await createBareNamespace(api, 'golden');
  let lists = 0;
  const { stop } = await startEngineController(namespaceController, api, {
    clock,
    through: (client) => ({
      ...client,
      list(type, options) {
        if (type.plural === 'configmaps') lists++;
        return client.list(type, options);
      },
    }),
  });
  t.after(async () => {
    await stop();
    await api.stop();
  });
  const held = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'held', finalizers: ['example.org/hold'] } };
  const url = `${NAMESPACES}/golden/configmaps`;
  await api.ok('POST', url, { body: held });
  await api.ok('DELETE', `${NAMESPACES}/golden`);
  const pass = async (seconds: number) => {
    for (let i = 0; i < seconds * 2; i++) await clock.advance(500);
  };
  await pass(60);
  assert.ok(lists > 4 && lists < 15, `there were ${lists} checks in a minute`);
  await api.ok('PATCH', `${url}/held`, { body: { metadata: { finalizers: null } } });
  await pass(16);
  assert.equal((await api.call('GET', `${NAMESPACES}/golden`)).status, 404);
});
