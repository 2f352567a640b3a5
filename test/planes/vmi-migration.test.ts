/** Migrations through the whole core. The test plays the agents of both nodes. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { kubevirt } from '#api/kubevirt/kind.ts';
import {
  MIGRATED_REASON,
  MIGRATION_ABORTED_REASON,
  MIGRATION_COMMITTED_CONDITION,
  MIGRATION_POD_FINALIZER,
  VMI_FINALIZER,
} from '#api/names.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { guestNetwork } from '#api/network/guest-network.ts';
import { networkAddress } from '#api/network/network-address.ts';
import { virtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { virtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { migrationController } from '#controllers/migration/migration-controller.ts';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, PODS, startVmiScene, VMIS, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const MIGRATIONS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';
const READY = { type: 'Ready', status: 'True' };
const RUNNING = { phase: 'Running', conditions: [READY] };
const CLASS = {
  metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
  volumeBindingMode: 'WaitForFirstConsumer',
  parameters: { scope: 'node' },
};

/** Starts a scene. The first node gets all guests, because the second is added later. */
async function start(t: TestContext, names: readonly string[] = ['db'], spec: Loose = {}): Promise<VmiScene> {
  const kinds = [
    kubevirt,
    virtualMachine,
    virtualMachineInstance,
    virtualMachineInstanceMigration,
    guestNetwork,
    networkAddress,
  ];
  const scene = await startVmiScene(t, [vmiController, storageController, migrationController], kinds);
  await scene.addStorageClass('local', CLASS);
  await scene.addNode('node-1');
  for (const name of names) await runGuest(scene, name, spec);
  await scene.addNode('node-2');
  return scene;
}

async function runGuest(scene: VmiScene, name: string, spec: Loose): Promise<void> {
  await scene.addClaim(`${name}-root`, { storageClassName: 'local' });
  const devices = { disks: [{ name: 'root', disk: { bus: 'virtio' } }], tpm: { persistent: true } };
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, finalizers: [VMI_FINALIZER] },
    spec: {
      domain: { memory: { guest: '128Mi' }, machine: { type: 'q35' }, devices },
      volumes: [{ name: 'root', persistentVolumeClaim: { claimName: `${name}-root` } }],
      ...spec,
    },
  };
  await scene.ok('POST', VMIS, { body });
  await scene.settle();
  for (const pod of await podsOf(scene, name)) await scene.reportPod(pod.metadata.name, RUNNING);
}

async function migrate(scene: VmiScene, vmiName = 'db', name = `go-${vmiName}`): Promise<void> {
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name },
    spec: { vmiName },
  };
  await scene.ok('POST', MIGRATIONS, { body });
  await scene.settle();
}

const vmiOf = (scene: VmiScene, name = 'db'): Promise<Loose> => scene.ok('GET', `${VMIS}/${name}`);
const migrationOf = (scene: VmiScene, name = 'go-db'): Promise<Loose> => scene.ok('GET', `${MIGRATIONS}/${name}`);
const phaseOf = async (scene: VmiScene, name?: string) => (await migrationOf(scene, name)).status.phase;

async function podsOf(scene: VmiScene, name = 'db'): Promise<Loose[]> {
  const { items } = await scene.ok('GET', PODS);
  return items.filter(({ metadata }: Loose) => metadata.annotations['kubevirt.io/domain'] === name);
}

/** Returns the claims with the persistent state of the VMI. */
async function listStateClaims(scene: VmiScene): Promise<Loose[]> {
  const { items } = await scene.ok('GET', CLAIMS);
  return items.filter(({ metadata }: Loose) => metadata.name.startsWith('persistent-state-for-'));
}

async function diskOf(scene: VmiScene, claimName = 'db-root'): Promise<Loose> {
  const { items } = await scene.ok('GET', VOLUMES);
  return items.find(({ spec }: Loose) => spec.claimRef.name === claimName).metadata.annotations;
}

async function reportProgress(scene: VmiScene, migrationProgress: Loose, name = 'db'): Promise<void> {
  const { status } = await vmiOf(scene, name);
  const { migrationUid } = status.migrationState;
  const body = { status: { migrationProgress: { migrationUid, ...migrationProgress } } };
  await scene.ok('PATCH', `${VMIS}/${name}/status`, { body });
  await scene.settle();
}

/** Reports as both agents that the guest has migrated; the agent of the source ends its pod. */
async function reportCommitted(scene: VmiScene, name = 'db'): Promise<void> {
  const { migrationState: state } = (await vmiOf(scene, name)).status;
  const committed = { type: MIGRATION_COMMITTED_CONDITION, status: 'True', message: state.migrationUid };
  await scene.reportPod(state.targetPod, { phase: 'Running', conditions: [committed, READY] });
  const { status: answer } = await scene.call('PATCH', `${PODS}/${state.sourcePod}/status`, {
    body: { status: { phase: 'Succeeded', reason: MIGRATED_REASON } },
  });
  // The pod may be gone already.
  assert.ok(answer === 200 || answer === 404);
  await scene.call('DELETE', `${PODS}/${state.sourcePod}?gracePeriodSeconds=0`);
  await scene.settle();
}

test('a guest migrates to another node, with its state and its disk', async (t) => {
  const scene = await start(t);
  const [source] = await listStateClaims(scene);
  assert.equal((await vmiOf(scene)).status.nodeName, 'node-1');
  await migrate(scene);

  const { migrationState: state, activePods } = (await vmiOf(scene)).status;
  assert.deepEqual([state.sourceNode, state.targetNode, state.mirroredVolumes], ['node-1', 'node-2', ['root']]);
  assert.equal(state.sourcePersistentStatePVCName, source.metadata.name);
  assert.deepEqual(new Set(Object.values(activePods)), new Set(['node-1', 'node-2']));
  for (const pod of await podsOf(scene)) assert.ok(pod.metadata.finalizers.includes(MIGRATION_POD_FINALIZER));
  assert.equal((await diskOf(scene))['selfsame.io/incoming-node'], 'node-2');
  const target = (await listStateClaims(scene)).find(
    ({ metadata }) => metadata.name === state.targetPersistentStatePVCName,
  );
  assert.equal(target.metadata.annotations?.['persistent-state-for-db'], undefined);
  assert.deepEqual(target.spec.resources, source.spec.resources);
  assert.equal(await phaseOf(scene), 'PreparingTarget');

  await scene.reportPod(state.targetPod, { phase: 'Running' });
  assert.equal(await phaseOf(scene), 'TargetReady');
  await reportProgress(scene, { phase: 'Copying', dataTotalBytes: 10 });
  const during = (await migrationOf(scene)).status;
  assert.deepEqual([during.phase, during.migrationProgress.dataTotalBytes], ['Running', 10]);

  await reportCommitted(scene);
  const { status, metadata } = await migrationOf(scene);
  assert.equal(status.phase, 'Succeeded');
  assert.equal(metadata.finalizers, undefined);
  const vmi = (await vmiOf(scene)).status;
  assert.deepEqual([vmi.nodeName, vmi.phase, vmi.migrationState.completed], ['node-2', 'Running', true]);
  const [left, ...more] = await listStateClaims(scene);
  assert.deepEqual(more, []);
  assert.equal(left.metadata.uid, target.metadata.uid);
  assert.equal(left.metadata.annotations['persistent-state-for-db'], 'true');
  const disk = await diskOf(scene);
  assert.deepEqual([disk['selfsame.io/volume-node'], disk['selfsame.io/leftover-node']], ['node-2', 'node-1']);
  assert.equal(disk['selfsame.io/incoming-node'], undefined);
  assert.deepEqual(
    (await podsOf(scene)).map(({ spec, metadata: { finalizers } }) => [spec.nodeName, finalizers]),
    [['node-2', undefined]],
  );
  // The agent knows this only after the migration.
  await reportProgress(scene, { phase: 'Committed', downtimeMs: 40 });
  assert.equal((await migrationOf(scene)).status.migrationProgress.downtimeMs, 40);
  const reported = await scene.eventsOf('db');
  assert.ok(reported.includes('Normal SuccessfulMigration The guest has moved from node node-1 to node node-2'));
});

test('a guest that cannot migrate stays, and nothing remains at the target', async (t) => {
  const scene = await start(t);
  const [source] = await listStateClaims(scene);
  await migrate(scene);
  const { migrationState: state } = (await vmiOf(scene)).status;
  await scene.reportPod(state.targetPod, { phase: 'Failed', reason: MIGRATION_ABORTED_REASON });
  // The target's agent removes its pod.
  await scene.call('DELETE', `${PODS}/${state.targetPod}?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal(await phaseOf(scene), 'Failed');
  const vmi = (await vmiOf(scene)).status;
  assert.deepEqual([vmi.nodeName, vmi.phase, vmi.migrationState.failed], ['node-1', 'Running', true]);
  assert.deepEqual(
    (await listStateClaims(scene)).map(({ metadata }) => metadata.uid),
    [source.metadata.uid],
  );
  const disk = await diskOf(scene);
  assert.deepEqual([disk['selfsame.io/volume-node'], disk['selfsame.io/leftover-node']], ['node-1', 'node-2']);
  // The next migration waits until node-2 has removed it.
  await migrate(scene, 'db', 'again');
  assert.match((await migrationOf(scene, 'again')).status.message, /node node-2 to remove a leftover copy/);
  const { items } = await scene.ok('GET', VOLUMES);
  const volume = items.find(({ spec }: Loose) => spec.claimRef.name === 'db-root').metadata.name;
  const body = { metadata: { annotations: { 'selfsame.io/leftover-node': null } } };
  await scene.ok('PATCH', `${VOLUMES}/${volume}`, { body });
  await scene.settle();
  assert.equal(await phaseOf(scene, 'again'), 'PreparingTarget');
});

test('a deleted migration is cancelled by the agents, and is gone afterwards', async (t) => {
  const scene = await start(t);
  await migrate(scene);
  await scene.ok('DELETE', `${MIGRATIONS}/go-db`);
  await scene.settle();
  const { migrationState: state } = (await vmiOf(scene)).status;
  assert.deepEqual([state.abortRequested, state.abortStatus], [true, 'Aborting']);
  assert.equal((await migrationOf(scene)).status.conditions[0].type, 'migrationAbortRequested');
  await reportProgress(scene, { phase: 'Failed', message: 'the migration was cancelled' });
  await scene.call('DELETE', `${PODS}/${state.targetPod}?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal((await scene.call('GET', `${MIGRATIONS}/go-db`)).status, 404);
  assert.equal((await vmiOf(scene)).status.migrationState.abortStatus, 'Succeeded');
});

test('two guests leave a node at a time; the third follows when one has left', async (t) => {
  const scene = await start(t, ['a', 'b', 'c']);
  for (const name of ['a', 'b', 'c']) await migrate(scene, name);
  assert.equal(await phaseOf(scene, 'go-b'), 'PreparingTarget');
  const third = (await migrationOf(scene, 'go-c')).status;
  assert.equal(third.phase, 'Pending');
  assert.match(third.message, /parallelOutboundMigrationsPerNode: 2/);
  await reportCommitted(scene, 'a');
  assert.equal(await phaseOf(scene, 'go-a'), 'Succeeded');
  assert.equal(await phaseOf(scene, 'go-c'), 'PreparingTarget');
});

test('draining a node requests a migration, and another one after a failure', async (t) => {
  const scene = await start(t, ['db'], { evictionStrategy: 'LiveMigrate' });
  const body = { status: { evacuationNodeName: 'node-1' } };
  await scene.ok('PATCH', `${VMIS}/db/status`, { body });
  await scene.settle();
  const migrationNames = async () =>
    (await scene.ok('GET', MIGRATIONS)).items.map(({ metadata }: Loose) => metadata.name);
  const [first, ...more] = await migrationNames();
  assert.match(first, /^kubevirt-evacuation-/);
  assert.deepEqual(more, []);
  await reportProgress(scene, { phase: 'Failed', message: 'the stream broke' });
  const { targetPod } = (await vmiOf(scene)).status.migrationState;
  await scene.call('DELETE', `${PODS}/${targetPod}?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal(await phaseOf(scene, first), 'Failed');
  assert.equal((await migrationNames()).length, 1);
  await scene.advance(30);
  assert.equal((await migrationNames()).length, 2);
});
