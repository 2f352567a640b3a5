/** Tests the sources of the controllers on the real engine. The test acts as all other controllers. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { VM_SNAPSHOT_CONTENT_FINALIZER } from '#api/names.ts';
import { virtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { virtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { virtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import { virtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { virtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { snapshotController } from '#controllers/snapshot/snapshot-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, startVmiScene, VMIS, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const GROUP = '/apis/snapshot.kubevirt.io/v1beta1/namespaces/default';
const SNAPSHOTS = `${GROUP}/virtualmachinesnapshots`;
const CONTENTS = `${GROUP}/virtualmachinesnapshotcontents`;
const RESTORES = `${GROUP}/virtualmachinerestores`;
const COPIES = '/apis/snapshot.storage.k8s.io/v1/namespaces/default/volumesnapshots';
const SPEC = { domain: {}, volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }] };

const KINDS: readonly CustomKind[] = [
  virtualMachine,
  virtualMachineInstance,
  virtualMachineIdentity,
  virtualMachineSnapshot,
  virtualMachineSnapshotContent,
  virtualMachineRestore,
];
/** Starts a plane with a VM that has a disk whose claim has no volume yet. */
async function startScene(t: TestContext): Promise<VmiScene> {
  const scene = await startVmiScene(t, [snapshotController], KINDS);
  const copies = { driver: 'csi.example.com', deletionPolicy: 'Delete' };
  await create(
    scene,
    '/apis/snapshot.storage.k8s.io/v1/volumesnapshotclasses',
    'VolumeSnapshotClass',
    'copies',
    copies,
  );
  await scene.addClaim('disk', { storageClassName: '' });
  await create(scene, VMS, 'VirtualMachine', 'db', { spec: { runStrategy: 'Manual', template: { spec: SPEC } } });
  return scene;
}

const API_VERSIONS: Readonly<Record<string, string>> = {
  VolumeSnapshotClass: 'snapshot.storage.k8s.io/v1',
  PersistentVolume: 'v1',
  VirtualMachine: 'kubevirt.io/v1',
  VirtualMachineInstance: 'kubevirt.io/v1',
};

async function create(scene: VmiScene, url: string, kind: string, name: string, fields: Loose): Promise<Loose> {
  const apiVersion = API_VERSIONS[kind] ?? 'snapshot.kubevirt.io/v1beta1';
  const { metadata = {}, ...rest } = fields;
  const created = await scene.ok('POST', url, { body: { apiVersion, kind, metadata: { name, ...metadata }, ...rest } });
  await scene.settle();
  return created;
}

async function createVolume(scene: VmiScene): Promise<void> {
  const spec = {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    csi: { driver: 'csi.example.com', volumeHandle: 'disk' },
    claimRef: { namespace: 'default', name: 'disk' },
  };
  await create(scene, VOLUMES, 'PersistentVolume', 'pv', { spec });
  assert.equal((await scene.ok('GET', `${CLAIMS}/disk`)).status.phase, 'Bound');
}

async function createSnapshot(scene: VmiScene, spec: Loose = {}): Promise<void> {
  const source = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
  await create(scene, SNAPSHOTS, 'VirtualMachineSnapshot', 'snap', { spec: { source, ...spec } });
}

async function setStatus(scene: VmiScene, url: string, status: Loose): Promise<void> {
  await scene.ok('PATCH', `${url}/status`, { body: { status } });
  await scene.settle();
}

const hold = (scene: VmiScene) => setStatus(scene, `${VMS}/db`, { snapshotInProgress: 'snap' });
const items = async (scene: VmiScene, url: string): Promise<Loose[]> => (await scene.ok('GET', url)).items;

async function progressOf(scene: VmiScene): Promise<[phase: string, progress: string]> {
  const { status } = await scene.ok('GET', `${SNAPSHOTS}/snap`);
  return [status.phase, status.conditions.find((one: Loose) => one.type === 'Progressing').message];
}

async function completeCopies(scene: VmiScene): Promise<void> {
  const creationTime = '2030-01-01T00:00:00Z';
  for (const { metadata } of await items(scene, COPIES)) {
    await setStatus(scene, `${COPIES}/${metadata.name}`, { creationTime, readyToUse: true });
  }
}

test('each awaited object triggers a reconcile, and a deletion removes everything', async (t) => {
  const scene = await startScene(t);
  await createSnapshot(scene);
  assert.deepEqual(await progressOf(scene), ['InProgress', 'Source not locked and prepared']);
  await hold(scene);
  assert.deepEqual(await progressOf(scene), ['InProgress', 'PersistentVolumeClaim "disk" is not bound']);
  const { uid } = (await scene.ok('GET', `${VMS}/db`)).metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid, controller: true };
  const vmi = await create(scene, VMIS, 'VirtualMachineInstance', 'db', {
    metadata: { ownerReferences: [owner] },
    spec: SPEC,
  });
  await setStatus(scene, `${VMIS}/db`, { phase: 'Scheduled' });
  assert.deepEqual(await progressOf(scene), ['InProgress', 'The VirtualMachineInstance is Scheduled, not yet Running']);
  await setStatus(scene, `${VMIS}/db`, { phase: 'Running' });
  assert.deepEqual(await progressOf(scene), ['InProgress', 'PersistentVolumeClaim "disk" is not bound']);
  assert.deepEqual(await items(scene, CONTENTS), []);
  await createVolume(scene);
  assert.deepEqual(await progressOf(scene), ['InProgress', 'Source locked and operation in progress']);
  const [copy] = await items(scene, COPIES);
  assert.equal(copy.metadata.annotations['selfsame.io/snapshot-instance'], vmi.metadata.uid);
  assert.equal(copy.spec.volumeSnapshotClassName, 'copies');
  await completeCopies(scene);
  assert.deepEqual(await progressOf(scene), ['Succeeded', 'Operation complete']);
  const { status } = await scene.ok('GET', `${SNAPSHOTS}/snap`);
  assert.deepEqual([status.readyToUse, status.creationTime], [true, '2030-01-01T00:00:00Z']);
  assert.ok(
    (await scene.eventsOf('snap')).includes(
      'Normal VirtualMachineSnapshotReady VirtualMachineSnapshot snap of VM db is ready',
    ),
  );

  // A restore needs the content: it is deleted after the restore, with the snapshot and the copy.
  const target = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
  const spec = { target, virtualMachineSnapshotName: 'snap' };
  await create(scene, RESTORES, 'VirtualMachineRestore', 'back', { spec });
  await scene.ok('DELETE', `${SNAPSHOTS}/snap`);
  await scene.settle();
  const [content] = await items(scene, CONTENTS);
  assert.deepEqual(content.metadata.finalizers, [VM_SNAPSHOT_CONTENT_FINALIZER]);
  assert.equal((await progressOf(scene))[0], 'Deleting');
  await setStatus(scene, `${RESTORES}/back`, { complete: true });
  for (const url of [SNAPSHOTS, CONTENTS, COPIES]) assert.deepEqual(await items(scene, url), [], url);
});

test('the deadline triggers a reconcile, which deletes the content and its copies', async (t) => {
  const scene = await startScene(t);
  await createVolume(scene);
  await createSnapshot(scene, { failureDeadline: '1m' });
  await hold(scene);
  assert.equal((await items(scene, COPIES)).length, 1);
  await scene.advance(50);
  assert.equal((await progressOf(scene))[0], 'InProgress');
  await scene.advance(20);
  const { status } = await scene.ok('GET', `${SNAPSHOTS}/snap`);
  assert.equal(status.phase, 'Failed');
  assert.equal(status.error.message, 'snapshot deadline exceeded: Source locked and operation in progress');
  for (const url of [CONTENTS, COPIES]) assert.deepEqual(await items(scene, url), [], url);
});

test('a new VM triggers its snapshot, and a VM that is deleted before it was held fails it', async (t) => {
  const scene = await startScene(t);
  await scene.ok('DELETE', `${VMS}/db`);
  await createSnapshot(scene);
  assert.deepEqual(await progressOf(scene), ['InProgress', 'Source does not exist']);
  await create(scene, VMS, 'VirtualMachine', 'db', {
    spec: { runStrategy: 'Manual', template: { spec: { domain: {} } } },
  });
  assert.deepEqual(await progressOf(scene), ['InProgress', 'Source not locked and prepared']);
  await scene.ok('DELETE', `${VMS}/db`);
  await scene.settle();
  assert.deepEqual(await progressOf(scene), ['Failed', 'Source does not exist any more']);
});

test('a snapshot of a VM without disks is ready at once, and reports the deletion of its content', async (t) => {
  const scene = await startScene(t);
  await create(scene, VMS, 'VirtualMachine', 'bare', {
    spec: { runStrategy: 'Manual', template: { spec: { domain: {} } } },
  });
  await createSnapshot(scene, { source: { kind: 'VirtualMachine', name: 'bare' } });
  await setStatus(scene, `${VMS}/bare`, { snapshotInProgress: 'snap' });
  assert.equal((await progressOf(scene))[0], 'Succeeded');
  const [content] = await items(scene, CONTENTS);
  await scene.ok('DELETE', `${CONTENTS}/${content.metadata.name}`);
  await scene.settle();
  const { status } = await scene.ok('GET', `${SNAPSHOTS}/snap`);
  assert.deepEqual([status.readyToUse, status.error.message], [false, 'VirtualMachineSnapshotContent does not exist']);
});
