/** Claims are bound to volumes: existing ones, and those that selfsame.io/local creates. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { storageController } from '#controllers/storage/storage-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, PODS, startVmiScene, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const LOCAL = {
  volumeBindingMode: 'WaitForFirstConsumer',
  allowVolumeExpansion: true,
  parameters: { scope: 'node' },
};
const SHARED = { volumeBindingMode: 'Immediate', allowVolumeExpansion: true, parameters: { scope: 'shared' } };
const DEFAULT = { metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } };

function aVolume(name: string, spec: Loose = {}): Loose {
  const fullSpec = {
    capacity: { storage: '2Gi' },
    accessModes: ['ReadWriteOnce'],
    hostPath: { path: '/srv/a' },
    storageClassName: 'manual',
    ...spec,
  };
  return { apiVersion: 'v1', kind: 'PersistentVolume', metadata: { name }, spec: fullSpec };
}

async function addVolume(scene: VmiScene, name: string, spec?: Loose): Promise<void> {
  await scene.ok('POST', VOLUMES, { body: aVolume(name, spec) });
  await scene.settle();
}

async function addPod(scene: VmiScene, name: string, claim: string): Promise<void> {
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: claim } }];
  const spec = { containers: [{ name: 'main', image: 'x' }], volumes };
  await scene.ok('POST', PODS, { body: { apiVersion: 'v1', kind: 'Pod', metadata: { name }, spec } });
  await scene.settle();
}

const claimState = async (scene: VmiScene, name: string) => {
  const { status, spec } = await scene.ok('GET', `${CLAIMS}/${name}`);
  return [status.phase, spec.volumeName, status.capacity?.storage];
};
const volumePhase = async (scene: VmiScene, volume: string) =>
  (await scene.ok('GET', `${VOLUMES}/${volume}`)).status.phase;

test('a claim gets the smallest volume that fits, which is bound, released and retained', async (t) => {
  const scene = await startVmiScene(t, []);
  await addVolume(scene, 'large', { capacity: { storage: '5Gi' } });
  await addVolume(scene, 'small');
  await addVolume(scene, 'tiny', { capacity: { storage: '1Mi' } });
  assert.equal(await volumePhase(scene, 'small'), 'Available');
  await scene.addClaim('disk', { storageClassName: 'manual' });
  assert.deepEqual(await claimState(scene, 'disk'), ['Bound', 'small', '2Gi']);
  assert.equal(await volumePhase(scene, 'small'), 'Bound');
  const { metadata } = await scene.ok('GET', `${CLAIMS}/disk`);
  assert.deepEqual(metadata.annotations, {
    'pv.kubernetes.io/bind-completed': 'yes',
    'pv.kubernetes.io/bound-by-controller': 'yes',
  });
  assert.deepEqual(metadata.finalizers, ['kubernetes.io/pvc-protection']);

  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  assert.equal(await volumePhase(scene, 'small'), 'Released');
  await scene.addClaim('disk', { storageClassName: 'manual', resources: { requests: { storage: '2Gi' } } });
  assert.deepEqual(await claimState(scene, 'disk'), ['Bound', 'large', '5Gi']);
});

test('a volume that is reserved for a claim is bound to no other', async (t) => {
  const scene = await startVmiScene(t, []);
  await addVolume(scene, 'mine', { claimRef: { namespace: 'default', name: 'disk' } });
  await scene.addClaim('other', { storageClassName: 'manual' });
  assert.deepEqual(await claimState(scene, 'other'), ['Pending', undefined, undefined]);
  await scene.addClaim('disk', { storageClassName: 'manual' });
  assert.deepEqual(await claimState(scene, 'disk'), ['Bound', 'mine', '2Gi']);
});

test('a claim whose volume is deleted is lost', async (t) => {
  const scene = await startVmiScene(t, []);
  await addVolume(scene, 'only');
  await scene.addClaim('disk', { storageClassName: 'manual' });
  await scene.ok('DELETE', `${VOLUMES}/only`);
  await scene.settle();
  assert.equal(await volumePhase(scene, 'only'), 'Bound', 'it is protected while it is bound');
  await scene.ok('PATCH', `${VOLUMES}/only`, { body: { metadata: { finalizers: null } } });
  await scene.settle();
  assert.equal((await claimState(scene, 'disk'))[0], 'Lost');
  const lost = 'Warning ClaimLost Bound claim has lost its PersistentVolume. Data on the volume is lost!';
  assert.ok((await scene.eventsOf('disk')).includes(lost));
});

test('a claim that a pod uses is not deleted before the pod', async (t) => {
  const scene = await startVmiScene(t, []);
  await scene.addNode('node-1');
  await addVolume(scene, 'only');
  await scene.addClaim('disk', { storageClassName: 'manual' });
  await addPod(scene, 'user', 'disk');
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  assert.ok((await scene.ok('GET', `${CLAIMS}/disk`)).metadata.deletionTimestamp);
  await scene.ok('DELETE', `${PODS}/user?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal((await scene.call('GET', `${CLAIMS}/disk`)).status, 404);
});

test('a claim of the default class waits for its consumer and gets a volume on its node', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addNode('node-1');
  await scene.addStorageClass('local', { ...LOCAL, ...DEFAULT });
  const { metadata } = await scene.addClaim('disk', {});
  assert.equal((await scene.ok('GET', `${CLAIMS}/disk`)).spec.storageClassName, 'local');
  assert.equal((await claimState(scene, 'disk'))[0], 'Pending');
  const waiting = 'Normal WaitForFirstConsumer waiting for first consumer to be created before binding';
  assert.deepEqual(await scene.eventsOf('disk'), [waiting]);

  await addPod(scene, 'user', 'disk');
  const name = `pvc-${metadata.uid}`;
  assert.deepEqual(await claimState(scene, 'disk'), ['Bound', name, '1Gi']);
  assert.equal((await scene.ok('GET', `${PODS}/user`)).spec.nodeName, 'node-1');
  const volume = await scene.ok('GET', `${VOLUMES}/${name}`);
  assert.equal(volume.metadata.annotations['selfsame.io/volume-node'], 'node-1');
  assert.deepEqual(volume.spec.csi, {
    driver: 'local.selfsame.io',
    volumeHandle: name,
    volumeAttributes: { scope: 'node', node: 'node-1' },
  });
  assert.equal(volume.spec.nodeAffinity, undefined, 'a migration can move it');
  assert.ok(
    (await scene.eventsOf('disk')).includes(`Normal ProvisioningSucceeded Successfully provisioned volume ${name}`),
  );
});

test('a shared volume is created at once, and deleted with its claim when the node has removed the data', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addStorageClass('shared', SHARED);
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'shared', accessModes: ['ReadWriteMany'] });
  const name = `pvc-${metadata.uid}`;
  assert.deepEqual(await claimState(scene, 'disk'), ['Bound', name, '1Gi']);
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  const volume = await scene.ok('GET', `${VOLUMES}/${name}`);
  assert.ok(volume.metadata.deletionTimestamp);
  assert.deepEqual(volume.metadata.finalizers, ['selfsame.io/volume-data']);
  await scene.ok('PATCH', `${VOLUMES}/${name}`, { body: { metadata: { finalizers: null } } });
  assert.equal((await scene.call('GET', `${VOLUMES}/${name}`)).status, 404);
});

test('a request that a class cannot satisfy is refused in an Event, and the claim stays Pending', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addStorageClass('here', { ...LOCAL, volumeBindingMode: 'Immediate' });
  await scene.addClaim('disk', { storageClassName: 'here', accessModes: ['ReadWriteMany'] });
  assert.equal((await claimState(scene, 'disk'))[0], 'Pending');
  const events = await scene.eventsOf('disk');
  const refused = events.filter((event) => event.startsWith('Warning ProvisioningFailed'));
  assert.equal(refused.length, 1, events.join('\n'));
  assert.match(refused[0] ?? '', /StorageClass "here" keeps a volume on one node and cannot provide ReadWriteMany/);
});

test('a retained volume keeps its data', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addStorageClass('kept', { ...SHARED, reclaimPolicy: 'Retain' });
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'kept' });
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  const volume = await scene.ok('GET', `${VOLUMES}/pvc-${metadata.uid}`);
  assert.deepEqual([volume.status.phase, volume.metadata.deletionTimestamp], ['Released', undefined]);
});

test('a claim grows: at once if it is not used, else when its node has grown the volume', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addNode('node-1');
  await scene.addStorageClass('shared', SHARED);
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'shared' });
  const requestSize = async (storage: string) => {
    await scene.ok('PATCH', `${CLAIMS}/disk`, { body: { spec: { resources: { requests: { storage } } } } });
    await scene.settle();
  };
  const capacity = async () => (await scene.ok('GET', `${VOLUMES}/pvc-${metadata.uid}`)).spec.capacity.storage;
  await requestSize('2Gi');
  assert.deepEqual([await capacity(), (await claimState(scene, 'disk'))[2]], ['2Gi', '2Gi']);

  await addPod(scene, 'user', 'disk');
  await requestSize('3Gi');
  assert.deepEqual([await capacity(), (await claimState(scene, 'disk'))[2]], ['3Gi', '2Gi']);
  const pending = async () =>
    (await scene.ok('GET', `${CLAIMS}/disk`)).status.conditions?.map(({ type }: Loose) => type);
  assert.deepEqual(await pending(), ['FileSystemResizePending']);
  await scene.ok('PATCH', `${CLAIMS}/disk/status`, { body: { status: { capacity: { storage: '3Gi' } } } });
  await scene.settle();
  assert.deepEqual((await pending()) ?? [], []);
});

test('deleting a volume reports if the node that holds its data is gone', async (t) => {
  const scene = await startVmiScene(t, [storageController]);
  await scene.addNode('node-1');
  await scene.addStorageClass('local', LOCAL);
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'local' });
  await addPod(scene, 'user', 'disk');
  await scene.ok('DELETE', `${PODS}/user?gracePeriodSeconds=0`);
  await scene.ok('DELETE', `${CLAIMS}/disk`);
  await scene.settle();
  const volume = `pvc-${metadata.uid}`;
  const nodeGoneEvents = async () => (await scene.eventsOf(volume)).filter((event) => event.includes('VolumeNodeGone'));
  assert.deepEqual(await nodeGoneEvents(), []);
  await scene.ok('DELETE', '/api/v1/nodes/node-1');
  await scene.settle();
  const [event, ...more] = await nodeGoneEvents();
  assert.match(event ?? '', /node node-1.* remove the finalizer selfsame\.io\/volume-data from this volume$/);
  assert.deepEqual(more, []);
  const { finalizers } = (await scene.ok('GET', `${VOLUMES}/${volume}`)).metadata;
  assert.deepEqual(finalizers, ['selfsame.io/volume-data']);
});
