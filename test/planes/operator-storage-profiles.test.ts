/** The StorageProfiles of our storage classes: maintained by the operator, also if CDI maintains them, too. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { storageProfileDefinition } from '#operator/objects/definitions.ts';
import { startOperator, type OperatorPlane } from '#operator/testing/operator-plane.ts';
import { startTestApi, type Loose, type TestApi } from '#test/support/test-api.ts';

const CRDS = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const PROFILES = '/apis/cdi.kubevirt.io/v1beta1/storageprofiles';
const CDI_LABELS = { 'app.kubernetes.io/managed-by': 'cdi-controller', 'cdi.kubevirt.io': '' };
const RWX_BLOCK = [{ accessModes: ['ReadWriteMany'], volumeMode: 'Block' }];

interface Scene {
  readonly api: TestApi;
  startOperator(): Promise<OperatorPlane>;
}

async function startScene(t: TestContext): Promise<Scene> {
  const api = await startTestApi({});
  const running: OperatorPlane[] = [];
  t.after(async () => {
    for (const plane of running) await plane.stop();
    await api.stop();
  });
  return {
    api,
    startOperator: async () => {
      const plane = await startOperator(api);
      running.push(plane);
      await plane.settle();
      return plane;
    },
  };
}

async function modesOf(api: TestApi): Promise<Record<string, string>> {
  const { items } = await api.ok('GET', PROFILES);
  const sets = items.map(({ metadata, spec }: Loose) => [
    metadata.name,
    spec.claimPropertySets.map(({ volumeMode, accessModes }: Loose) => `${volumeMode} ${accessModes.join()}`).join(),
  ]);
  return Object.fromEntries(sets);
}

test('each of our classes has a profile, and changes of its modes and deletions are undone', async (t) => {
  const { api, startOperator: start } = await startScene(t);
  const plane = await start();
  const want = {
    local: 'Filesystem ReadWriteOnce',
    'local-block': 'Block ReadWriteOnce',
    shared: 'Filesystem ReadWriteMany',
    'shared-block': 'Block ReadWriteMany',
  };
  assert.deepEqual(await modesOf(api), want);
  await api.ok('PATCH', `${PROFILES}/local`, { body: { spec: { claimPropertySets: RWX_BLOCK } } });
  await api.ok('DELETE', `${PROFILES}/shared`);
  await plane.settle();
  assert.deepEqual(await modesOf(api), want);
});

test('a profile that CDI created gets our modes, and keeps what CDI and administrators wrote', async (t) => {
  const { api, startOperator: start } = await startScene(t);
  const cdiDefinition = { ...storageProfileDefinition.object, metadata: { name: 'storageprofiles.cdi.kubevirt.io' } };
  const { metadata: definition } = await api.ok('POST', CRDS, { body: cdiDefinition });
  await api.settle();
  const kind = { apiVersion: 'cdi.kubevirt.io/v1beta1', kind: 'StorageProfile' };
  const made = { ...kind, metadata: { name: 'shared-block', labels: CDI_LABELS }, spec: { cloneStrategy: 'copy' } };
  await api.ok('POST', PROFILES, { body: made });

  const plane = await start();
  const read = () => api.ok('GET', `${PROFILES}/shared-block`);
  const { metadata, spec } = await read();
  assert.deepEqual([metadata.labels, spec], [CDI_LABELS, { cloneStrategy: 'copy', claimPropertySets: RWX_BLOCK }]);

  // As CDI reconciles: it copies the modes to the status, and sets its labels on every profile.
  const status = { claimPropertySets: RWX_BLOCK, provisioner: 'selfsame.io/local', storageClass: 'local' };
  await api.ok('PATCH', `${PROFILES}/local/status`, { body: { status } });
  await api.ok('PATCH', `${PROFILES}/local`, { body: { metadata: { labels: CDI_LABELS } } });
  await plane.settle();
  const { revision } = api.store;
  await api.settle();
  await plane.settle();
  assert.equal(api.store.revision, revision, 'neither undoes the writes of the other');
  assert.deepEqual((await api.ok('GET', `${PROFILES}/local`)).metadata.labels, CDI_LABELS);
  const now = await api.ok('GET', `${CRDS}/storageprofiles.cdi.kubevirt.io`);
  assert.equal(now.metadata.uid, definition.uid);
  assert.equal(now.metadata.labels?.['app.kubernetes.io/managed-by'], undefined, "CDI's definition is kept");
});
