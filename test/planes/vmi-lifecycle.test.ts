/** Instances from creation to deletion. The test plays the node agents. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { VMI_FINALIZER } from '#api/names.ts';
import { guestNetwork } from '#api/network/guest-network.ts';
import { networkAddress } from '#api/network/network-address.ts';
import { virtualMachineInstanceMigration } from '#api/virtual-machine-instance-migration/kind.ts';
import { virtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { virtualMachine } from '#api/virtual-machine/kind.ts';
import { storageController } from '#controllers/storage/storage-controller.ts';
import { kubevirt } from '#api/kubevirt/kind.ts';
import { vmiController } from '#controllers/vmi/vmi-controller.ts';
import type { Loose } from '#test/support/test-api.ts';
import { CLAIMS, PODS, startVmiScene, VMIS, VOLUMES, type VmiScene } from '#test/support/vmi-scene.ts';

const READY = [{ type: 'Ready', status: 'True' }];
const RUNNING = { phase: 'Running', conditions: READY };
const LOCAL = { volumeBindingMode: 'WaitForFirstConsumer', parameters: { scope: 'node' } };

async function start(t: TestContext, ...nodes: string[]): Promise<VmiScene> {
  const kinds = [
    kubevirt,
    virtualMachine,
    virtualMachineInstance,
    virtualMachineInstanceMigration,
    guestNetwork,
    networkAddress,
  ];
  const scene = await startVmiScene(t, [vmiController, storageController], kinds);
  for (const node of nodes) await scene.addNode(node);
  return scene;
}

async function create(scene: VmiScene, spec: Loose = {}): Promise<Loose> {
  const { domain = {}, ...rest } = spec;
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'db', finalizers: [VMI_FINALIZER] },
    spec: { domain: { memory: { guest: '128Mi' }, machine: { type: 'q35' }, ...domain }, ...rest },
  };
  const vmi = await scene.ok('POST', VMIS, { body });
  await scene.settle();
  return vmi;
}

const readVmi = (scene: VmiScene): Promise<Loose> => scene.ok('GET', `${VMIS}/db`);
const conditionOf = ({ status }: Loose, type: string) =>
  status.conditions.find((candidate: Loose) => candidate.type === type);
const onClaim = (claimName: string) => ({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName } }] });

async function findPod(scene: VmiScene): Promise<Loose> {
  const { items } = await scene.ok('GET', PODS);
  assert.equal(items.length, 1, 'there is one launcher pod');
  return items[0];
}

async function runGuest(scene: VmiScene): Promise<Loose> {
  const pod = await findPod(scene);
  await scene.reportPod(pod.metadata.name, RUNNING);
  return pod;
}

test('an instance gets a pod, a node and a guest, and reports each step', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const before = await readVmi(scene);
  assert.equal(before.status.phase, 'Scheduled');
  assert.equal(conditionOf(before, 'Ready').reason, 'GuestNotRunning');
  const pod = await runGuest(scene);
  const { metadata, status } = await readVmi(scene);
  assert.match(pod.metadata.name, /^virt-launcher-db-[a-z0-9]{5}$/);
  assert.deepEqual([status.phase, status.nodeName], ['Running', 'node-1']);
  assert.equal(metadata.labels['kubevirt.io/nodeName'], 'node-1');
  assert.deepEqual(status.activePods, { [pod.metadata.uid]: 'node-1' });
  assert.equal(conditionOf({ status }, 'Ready').status, 'True');
  assert.equal(conditionOf({ status }, 'LiveMigratable').status, 'True');
  const phases = status.phaseTransitionTimestamps.map(({ phase }: Loose) => phase);
  assert.deepEqual([phases[0], phases.at(-2), phases.at(-1)], ['Pending', 'Scheduled', 'Running']);
  assert.deepEqual(await scene.eventsOf('db'), [
    `Normal SuccessfulCreate Created virtual machine pod ${pod.metadata.name}`,
  ]);
});

test('the reports of the agent stay, in their order', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const vmi = await readVmi(scene);
  const paused = { type: 'Paused', status: 'True', reason: 'PausedByUser' };
  const status = { ...vmi.status, machine: { type: 'pc-q35-7.2' }, conditions: [paused, ...vmi.status.conditions] };
  await scene.ok('PUT', `${VMIS}/db/status`, { body: { ...vmi, status } });
  await runGuest(scene);
  const after = await readVmi(scene);
  assert.equal(after.status.phase, 'Running');
  assert.deepEqual(after.status.machine, { type: 'pc-q35-7.2' });
  assert.deepEqual(after.status.conditions[0], paused);
  const revision = scene.revision;
  await scene.settle();
  assert.equal(scene.revision, revision);
});

test('a missing claim is reported and waited for', async (t) => {
  const scene = await start(t, 'node-1');
  await scene.addStorageClass('local', LOCAL);
  await create(scene, onClaim('disk'));
  const vmi = await readVmi(scene);
  assert.equal(vmi.status.phase, 'Pending');
  const { status, reason, message } = conditionOf(vmi, 'Synchronized');
  const text = 'PVC default/disk does not exist, waiting for it to appear';
  assert.deepEqual([status, reason, message], ['False', 'FailedPvcNotFound', text]);
  assert.deepEqual(await scene.eventsOf('db'), [`Warning FailedPvcNotFound ${text}`]);
  assert.deepEqual((await scene.ok('GET', PODS)).items, []);

  await scene.addClaim('disk', { storageClassName: 'local' });
  const after = await readVmi(scene);
  assert.equal(after.status.phase, 'Scheduled');
  assert.equal(conditionOf(after, 'Synchronized'), undefined);
  assert.deepEqual(after.status.volumeStatus, [
    {
      name: 'root',
      persistentVolumeClaimInfo: {
        claimName: 'disk',
        accessModes: ['ReadWriteOnce'],
        volumeMode: 'Filesystem',
        capacity: { storage: '1Gi' },
        requests: { storage: '1Gi' },
      },
    },
  ]);
});

test('an instance runs on the node of its data, and waits while that node accepts no pods', async (t) => {
  const scene = await start(t, 'node-1', 'node-2');
  await scene.addStorageClass('local', LOCAL);
  const { metadata } = await scene.addClaim('disk', { storageClassName: 'local' });
  await create(scene, onClaim('disk'));
  const first = await findPod(scene);
  const home = first.spec.nodeName;
  const volume = await scene.ok('GET', `${VOLUMES}/pvc-${metadata.uid}`);
  assert.equal(volume.metadata.annotations['selfsame.io/volume-node'], home);
  await scene.ok('DELETE', `${VMIS}/db`);
  await scene.settle();
  await scene.ok('DELETE', `${PODS}/${first.metadata.name}?gracePeriodSeconds=0`);
  await scene.settle();

  await scene.ok('PATCH', `/api/v1/nodes/${home}`, { body: { spec: { unschedulable: true } } });
  await create(scene, onClaim('disk'));
  const waiting = await readVmi(scene);
  assert.equal(waiting.status.phase, 'Scheduling');
  assert.equal(conditionOf(waiting, 'PodScheduled').reason, 'Unschedulable');
  await scene.ok('PATCH', `/api/v1/nodes/${home}`, { body: { spec: { unschedulable: null } } });
  await scene.settle();
  const after = await readVmi(scene);
  assert.deepEqual([after.status.phase, after.status.nodeName], ['Scheduled', home]);
  assert.equal(conditionOf(after, 'PodScheduled'), undefined);
  assert.equal((await scene.ok('GET', `${CLAIMS}/disk`)).status.phase, 'Bound');
});

test('a refused pod is reported until it is created', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene, { priorityClassName: 'urgent' });
  const { reason, message } = conditionOf(await readVmi(scene), 'Synchronized');
  assert.equal(reason, 'FailedCreate');
  assert.match(message, /^failed to create virtual machine pod: .*no PriorityClass with name urgent was found/);
  const body = {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name: 'urgent' },
    value: 10,
  };
  await scene.ok('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', { body });
  await scene.advance(60);
  const vmi = await readVmi(scene);
  assert.deepEqual([vmi.status.phase, conditionOf(vmi, 'Synchronized')], ['Scheduled', undefined]);
});

const terminatedStatus = (exitCode: number, reason: string, message = '') => ({
  containerStatuses: [
    {
      name: 'compute',
      image: 'x',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { terminated: { exitCode, reason, message } },
    },
  ],
});

test('a guest that shuts down has succeeded, and its pod stays for its log', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const pod = await runGuest(scene);
  await scene.reportPod(pod.metadata.name, { phase: 'Succeeded', ...terminatedStatus(0, 'Completed') });
  const { status } = await readVmi(scene);
  assert.deepEqual([status.phase, status.reason, status.activePods], ['Succeeded', undefined, undefined]);
  assert.equal(conditionOf({ status }, 'Ready').reason, 'PodTerminating');
  assert.equal((await findPod(scene)).metadata.deletionTimestamp, undefined);
});

test('a guest that crashes has failed, with the reason', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const pod = await runGuest(scene);
  await scene.reportPod(pod.metadata.name, {
    phase: 'Failed',
    ...terminatedStatus(1, 'GuestCrashed', 'QEMU exited with 1'),
  });
  const { status } = await readVmi(scene);
  assert.deepEqual([status.phase, status.reason], ['Failed', 'GuestCrashed']);
  assert.ok((await scene.eventsOf('db')).includes('Warning GuestCrashed QEMU exited with 1'));
});

test('an error of the node during the start is reported', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const waiting = { reason: 'ImageMissing', message: 'there is no disk.img' };
  const compute = { name: 'compute', image: 'x', imageID: '', ready: false, restartCount: 0, state: { waiting } };
  await scene.reportPod((await findPod(scene)).metadata.name, { containerStatuses: [compute] });
  const { reason, message } = conditionOf(await readVmi(scene), 'Synchronized');
  assert.deepEqual([reason, message], ['ImageMissing', 'there is no disk.img']);
  await runGuest(scene);
  assert.equal((await readVmi(scene)).status.phase, 'Running');
});

test('a deleted instance is gone after its pod', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const pod = await runGuest(scene);
  await scene.ok('DELETE', `${VMIS}/db`);
  await scene.settle();
  assert.ok((await findPod(scene)).metadata.deletionTimestamp);
  const { status } = await readVmi(scene);
  assert.deepEqual([status.phase, conditionOf({ status }, 'Ready').reason], ['Running', 'PodTerminating']);
  await scene.reportPod(pod.metadata.name, { phase: 'Succeeded' });
  assert.equal((await readVmi(scene)).status.phase, 'Succeeded');
  await scene.ok('DELETE', `${PODS}/${pod.metadata.name}?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal((await scene.call('GET', `${VMIS}/db`)).status, 404);
});

test('an instance that waits for a claim can be deleted', async (t) => {
  const scene = await start(t);
  await create(scene, onClaim('disk'));
  await scene.ok('DELETE', `${VMIS}/db`);
  await scene.settle();
  assert.equal((await scene.call('GET', `${VMIS}/db`)).status, 404);
});

test('an evicted guest ends as its agent reported, and is not started again', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const { metadata } = await runGuest(scene);
  await scene.ok('DELETE', `${PODS}/${metadata.name}`);
  await scene.settle();
  assert.equal((await readVmi(scene)).status.phase, 'Running');
  const status = { phase: 'Succeeded' };
  // The agent removes the pod as soon as it has reported how the guest ended.
  await scene.ok('PATCH', `${PODS}/${metadata.name}/status`, { body: { status } });
  await scene.ok('DELETE', `${PODS}/${metadata.name}?gracePeriodSeconds=0`);
  await scene.settle();
  assert.equal((await readVmi(scene)).status.phase, 'Succeeded');
  assert.deepEqual((await scene.ok('GET', PODS)).items, [], 'there is no second pod');
});

test('a pod that is deleted by force fails its instance', async (t) => {
  const scene = await start(t, 'node-1');
  await create(scene);
  const { metadata } = await runGuest(scene);
  await scene.ok('DELETE', `${PODS}/${metadata.name}?gracePeriodSeconds=0`);
  await scene.settle();
  const { status } = await readVmi(scene);
  assert.deepEqual([status.phase, status.reason], ['Failed', 'PodGone']);
});

test('an instance on a lost node has failed, and is not gone while its pod may still run', async (t) => {
  const scene = await start(t, 'node-1', 'node-2');
  await create(scene);
  const home = (await runGuest(scene)).spec.nodeName;
  scene.stopHeartbeat(home);
  await scene.advance(60);
  const silent = await readVmi(scene);
  assert.deepEqual([silent.status.phase, conditionOf(silent, 'Ready').status], ['Running', 'False']);
  await scene.advance(330);
  const { status } = await readVmi(scene);
  assert.deepEqual([status.phase, status.reason], ['Failed', 'NodeLost']);
  await scene.ok('DELETE', `${VMIS}/db`);
  await scene.settle();
  assert.equal((await scene.call('GET', `${VMIS}/db`)).status, 200);
  await scene.ok('DELETE', `/api/v1/nodes/${home}`);
  await scene.advance(90);
  assert.equal((await scene.call('GET', `${VMIS}/db`)).status, 404);
});
