/** Snapshots of volumes and volumes from them, as objects. The test plays the agents that copy and remove the data. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { volumeSnapshotController } from '#controllers/volume-snapshot/volume-snapshot-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, PODS, startVmiScene, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const GROUP = '/apis/snapshot.storage.k8s.io/v1';
const SNAPSHOTS = `${GROUP}/namespaces/default/volumesnapshots`;
const CONTENTS = `${GROUP}/volumesnapshotcontents`;
const DEFAULT = { 'snapshot.storage.kubernetes.io/is-default-class': 'true' };
const BOUND = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
const SOURCE = 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection';
const GIB = 2 ** 30;
/** 2030-01-01 in nanoseconds. */
const MOMENT = 1_893_456_000_000_000_000;

async function startScene(t: TestContext, deletionPolicy = 'Delete'): Promise<VmiScene> {
  const scene = await startVmiScene(t, [storageController, volumeSnapshotController]);
  await scene.addNode('node-1');
  await scene.addNode('node-2');
  await scene.addStorageClass('local', { volumeBindingMode: 'WaitForFirstConsumer', parameters: { scope: 'node' } });
  await scene.addStorageClass('shared', { volumeBindingMode: 'Immediate', parameters: { scope: 'shared' } });
  await scene.ok('POST', `${GROUP}/volumesnapshotclasses`, {
    body: {
      apiVersion: 'snapshot.storage.k8s.io/v1',
      kind: 'VolumeSnapshotClass',
      metadata: { name: 'copies', annotations: DEFAULT },
      driver: 'local.selfsame.io',
      deletionPolicy,
    },
  });
  return scene;
}

/** Creates a claim of the class local, whose volume is on node-2. */
async function createClaimOnNode2(scene: VmiScene): Promise<Loose> {
  const claim = await scene.addClaim('disk', { storageClassName: 'local' });
  const volumes = [{ name: 'disk', persistentVolumeClaim: { claimName: 'disk' } }];
  const nodeSelector = { 'kubernetes.io/hostname': 'node-2' };
  const spec = { containers: [{ name: 'main', image: 'x' }], volumes, nodeSelector };
  await scene.ok('POST', PODS, { body: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'user' }, spec } });
  await scene.settle();
  return claim;
}

async function takeSnapshot(scene: VmiScene, spec: Loose = {}): Promise<Loose> {
  const source = { persistentVolumeClaimName: 'disk' };
  const metadata = { name: 'snap', annotations: { 'selfsame.io/snapshot-set': 'set' } };
  const body = {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata,
    spec: { source, ...spec },
  };
  const made = await scene.ok('POST', SNAPSHOTS, { body });
  await scene.settle();
  return made;
}

const readSnapshot = (scene: VmiScene) => scene.ok('GET', `${SNAPSHOTS}/snap`);

/** Reports a complete copy, as the agent does. */
async function reportCopied(scene: VmiScene, content: string, snapshotHandle: string): Promise<void> {
  const status = { snapshotHandle, creationTime: MOMENT, readyToUse: true, restoreSize: GIB };
  await patch(scene, `${CONTENTS}/${content}/status`, { status });
}

async function patch(scene: VmiScene, url: string, body: Loose): Promise<void> {
  await scene.ok('PATCH', url, { body });
  await scene.settle();
}

async function remove(scene: VmiScene, url: string): Promise<void> {
  await scene.ok('DELETE', url);
  await scene.settle();
}

async function createClaimFrom(scene: VmiScene, name: string, spec: Loose = {}): Promise<Loose> {
  const dataSource = { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'snap' };
  return await scene.addClaim(name, { storageClassName: 'local', dataSource, ...spec });
}

test('a snapshot is taken on the node of its volume, becomes a volume there, and is deleted with its data', async (t) => {
  const scene = await startScene(t);
  const claim = await createClaimOnNode2(scene);
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  const content = await scene.ok('GET', `${CONTENTS}/${name}`);
  assert.equal(content.spec.source.volumeHandle, `pvc-${claim.metadata.uid}`);
  assert.equal(content.spec.volumeSnapshotClassName, 'copies');
  assert.deepEqual(content.metadata.annotations, {
    'selfsame.io/snapshot-node': 'node-2',
    'selfsame.io/snapshot-set': 'set',
  });
  const waiting = await readSnapshot(scene);
  assert.equal(waiting.spec.volumeSnapshotClassName, 'copies');
  assert.deepEqual(waiting.metadata.finalizers, [BOUND]);
  assert.deepEqual(waiting.status, { boundVolumeSnapshotContentName: name, readyToUse: false });

  const handle = `node/node-2/${name}`;
  await reportCopied(scene, name, handle);
  assert.deepEqual((await readSnapshot(scene)).status, {
    boundVolumeSnapshotContentName: name,
    creationTime: '2030-01-01T00:00:00Z',
    readyToUse: true,
    restoreSize: '1Gi',
  });

  // Its class waits for a consumer, but the data decides the node.
  const { uid } = (await createClaimFrom(scene, 'copy')).metadata;
  const bound = await scene.ok('GET', `${CLAIMS}/copy`);
  assert.deepEqual([bound.status.phase, bound.spec.volumeName], ['Bound', `pvc-${uid}`]);
  const volume = await scene.ok('GET', `${VOLUMES}/pvc-${uid}`);
  assert.equal(volume.metadata.annotations['selfsame.io/volume-node'], 'node-2');
  assert.equal(volume.metadata.annotations['selfsame.io/volume-copy-node'], 'node-2');
  assert.deepEqual(volume.spec.csi.volumeAttributes, { scope: 'node', node: 'node-2', snapshot: handle });
  assert.deepEqual((await readSnapshot(scene)).metadata.finalizers, [BOUND, SOURCE]);

  await remove(scene, `${SNAPSHOTS}/snap`);
  assert.equal(
    (await scene.ok('GET', `${CONTENTS}/${name}`)).metadata.deletionTimestamp,
    undefined,
    'it is being read',
  );
  const finalizers = volume.metadata.finalizers.filter((finalizer: string) => finalizer !== 'selfsame.io/volume-copy');
  await patch(scene, `${VOLUMES}/pvc-${uid}`, { metadata: { finalizers } });
  assert.ok((await scene.ok('GET', `${CONTENTS}/${name}`)).metadata.deletionTimestamp);
  assert.ok(await readSnapshot(scene), 'it waits for the removal of its data');
  await patch(scene, `${CONTENTS}/${name}`, { metadata: { finalizers: null } });
  assert.equal((await scene.call('GET', `${SNAPSHOTS}/snap`)).status, 404);
});

test('a snapshot that cannot be taken yet reports why, and is taken when it can be', async (t) => {
  const scene = await startScene(t);
  const message = async () => (await readSnapshot(scene)).status.error?.message;
  await takeSnapshot(scene, { volumeSnapshotClassName: 'copies' });
  assert.equal(await message(), 'failed to take snapshot: PersistentVolumeClaim "disk" not found');
  await scene.addClaim('disk', { storageClassName: 'local' });
  assert.equal(await message(), 'failed to take snapshot: PersistentVolumeClaim "disk" is not bound to a volume');
  await remove(scene, `${CLAIMS}/disk`);
  await createClaimOnNode2(scene);
  const { status } = await readSnapshot(scene);
  assert.deepEqual([status.error, typeof status.boundVolumeSnapshotContentName], [undefined, 'string']);
});

test('shared data is copied by another node when the first is gone', async (t) => {
  const scene = await startScene(t);
  await scene.addClaim('disk', { storageClassName: 'shared' });
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  const nodeOf = async (url: string, key: string) => (await scene.ok('GET', url)).metadata.annotations[key];
  const copier = () => nodeOf(`${CONTENTS}/${name}`, 'selfsame.io/snapshot-node');
  assert.equal(await copier(), 'node-1');
  await remove(scene, '/api/v1/nodes/node-1');
  assert.equal(await copier(), 'node-2');

  await reportCopied(scene, name, `shared/${name}`);
  const { uid } = (await createClaimFrom(scene, 'copy', { storageClassName: 'shared' })).metadata;
  const filler = () => nodeOf(`${VOLUMES}/pvc-${uid}`, 'selfsame.io/volume-copy-node');
  assert.equal(await filler(), 'node-2');
  await remove(scene, '/api/v1/nodes/node-2');
  await scene.addNode('node-3');
  await scene.advance(10);
  assert.equal(await filler(), 'node-3');
});

test('a claim waits until its snapshot is ready, and is refused if it is too small', async (t) => {
  const scene = await startScene(t);
  await createClaimOnNode2(scene);
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  await createClaimFrom(scene, 'early');
  await createClaimFrom(scene, 'small', { resources: { requests: { storage: '1Mi' } } });
  const phase = async (claim: string) => (await scene.ok('GET', `${CLAIMS}/${claim}`)).status.phase;
  assert.equal(await phase('early'), 'Pending');
  await reportCopied(scene, name, `node/node-2/${name}`);
  assert.deepEqual([await phase('early'), await phase('small')], ['Bound', 'Pending']);
  const events = (await scene.eventsOf('small')).join('\n');
  assert.match(events, /ProvisioningFailed .*requested volume size 1Mi is less than the size 1Gi for .* "snap"/);
});

test('a retained content stays, and serves a VolumeSnapshot that is created for it', async (t) => {
  const scene = await startScene(t, 'Retain');
  await createClaimOnNode2(scene);
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  await reportCopied(scene, name, `node/node-2/${name}`);
  await remove(scene, `${SNAPSHOTS}/snap`);
  assert.equal((await scene.call('GET', `${SNAPSHOTS}/snap`)).status, 404);
  const kept = await scene.ok('GET', `${CONTENTS}/${name}`);
  assert.deepEqual([kept.spec.volumeSnapshotRef.uid, kept.metadata.deletionTimestamp], [metadata.uid, undefined]);

  const source = { volumeSnapshotContentName: name, persistentVolumeClaimName: undefined };
  const next = await takeSnapshot(scene, { source });
  const state = async () => (await readSnapshot(scene)).status;
  assert.match((await state()).error.message, /refers to another VolumeSnapshot$/);
  await patch(scene, `${CONTENTS}/${name}`, { spec: { volumeSnapshotRef: { uid: null } } });
  const { error, readyToUse } = await state();
  assert.deepEqual([error, readyToUse], [undefined, true]);
  assert.equal((await scene.ok('GET', `${CONTENTS}/${name}`)).spec.volumeSnapshotRef.uid, next.metadata.uid);
});

test('a volume whose claim is deleted stays until its snapshot is complete', async (t) => {
  const scene = await startScene(t);
  const claim = await scene.addClaim('disk', { storageClassName: 'shared' });
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  await remove(scene, `${CLAIMS}/disk`);
  const deletionTime = async () =>
    (await scene.ok('GET', `${VOLUMES}/pvc-${claim.metadata.uid}`)).metadata.deletionTimestamp;
  assert.equal(await deletionTime(), undefined);
  await reportCopied(scene, name, `shared/${name}`);
  assert.ok(await deletionTime());
});

test('deleting a snapshot whose node is gone reports that', async (t) => {
  const scene = await startScene(t);
  await createClaimOnNode2(scene);
  const { metadata } = await takeSnapshot(scene);
  const name = `snapcontent-${metadata.uid}`;
  await reportCopied(scene, name, `node/node-2/${name}`);
  await remove(scene, '/api/v1/nodes/node-2');
  assert.deepEqual(await scene.eventsOf(name), []);
  await remove(scene, `${SNAPSHOTS}/snap`);
  const [event, ...more] = await scene.eventsOf(name);
  assert.match(
    event ?? '',
    /^Warning SnapshotNodeGone .*node node-2.* remove the finalizer selfsame\.io\/snapshot-data from/,
  );
  assert.deepEqual(more, []);
});

test('a content is deleted after a VolumeSnapshot that was deleted by force, and never comes back', async (t) => {
  const scene = await startScene(t);
  await createClaimOnNode2(scene);
  const first = await takeSnapshot(scene);
  const name = `snapcontent-${first.metadata.uid}`;
  await patch(scene, `${CONTENTS}/${name}`, { metadata: { finalizers: null } });
  await remove(scene, `${CONTENTS}/${name}`);
  assert.equal((await readSnapshot(scene)).status.error.message, 'VolumeSnapshotContent is missing');
  assert.equal((await scene.call('GET', `${CONTENTS}/${name}`)).status, 404);
  await remove(scene, `${SNAPSHOTS}/snap`);

  const second = await takeSnapshot(scene);
  await scene.ok('PATCH', `${SNAPSHOTS}/snap`, { body: { metadata: { finalizers: null } } });
  await remove(scene, `${SNAPSHOTS}/snap`);
  const remaining = await scene.call('GET', `${CONTENTS}/snapcontent-${second.metadata.uid}`);
  assert.ok(remaining.status === 404 || remaining.body.metadata.deletionTimestamp);
});
