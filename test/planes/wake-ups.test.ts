/**
 * Controllers are woken by everything that their decisions read. The runtime refuses reads of kinds that do not wake a
 * controller (runtime/decision-reads.ts); `settle` of a plane fails if a controller has work and was not woken
 * (runtime/controller.ts). These are the cases in which that failed before, and one test of every controller.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aMigration, migrationPhase } from '#test/support/migrating-vm.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const STATE = { domain: { devices: { tpm: { persistent: true } } } };
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/selfsame-system/kubevirts/kubevirt';

async function configure(plane: VmPlane, configuration: Loose): Promise<void> {
  await plane.server.api.ok('PATCH', KUBEVIRT, { body: { spec: { configuration } } });
  await plane.settle();
}

function holdSends(plane: VmPlane, hold: boolean): void {
  for (const { host } of plane.nodes) host.holdSends = hold;
}

describe('a failed migration of a VM that has only persistent state', () => {
  it('ends as soon as the claim of its target is gone, and another can begin', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('vault', { runStrategy: 'Always' }, STATE));
    const { nodeName } = (await plane.get('VirtualMachineInstance', 'vault')).status;
    const target = plane.nodes.find(({ name }) => name !== nodeName)!;
    holdSends(plane, true);
    await plane.apply(aMigration('first', 'vault'));
    assert.equal(await migrationPhase(plane, 'first'), 'Running');

    for (const guest of target.livingGuests('default/vault')) guest.crash('its QEMU was killed');
    await plane.settle();

    assert.match(await migrationPhase(plane, 'first'), /^Failed: /);
    assert.equal((await plane.names('PersistentVolumeClaim')).length, 1, 'the claim of the target is gone');
    holdSends(plane, false);
    await plane.apply(aMigration('second', 'vault'));
    assert.equal(await migrationPhase(plane, 'second'), 'Succeeded');
  });

  it('ends when the agent of its target is killed and started again', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('vault', { runStrategy: 'Always' }, STATE));
    const { nodeName } = (await plane.get('VirtualMachineInstance', 'vault')).status;
    const target = plane.nodes.find(({ name }) => name !== nodeName)!;
    holdSends(plane, true);
    await plane.apply(aMigration('first', 'vault'));
    target.crashAgent();
    await plane.killNode(target.name);
    await plane.settle();
    target.reconnect();
    await plane.startAgent(target.name);
    assert.match(await migrationPhase(plane, 'first'), /^Failed: /);
  });
});

describe('an instance whose launcher pod lost its owner', () => {
  it('notices that the pod has ended', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('lone', { runStrategy: 'RerunOnFailure' }));
    const [pod] = await plane.list('Pod');
    await plane.apply({ ...pod, metadata: { name: pod.metadata.name, ownerReferences: [] } });
    plane.guest('lone').shutDown();
    await plane.settle();
    assert.equal(await plane.summaryOf('lone'), 'Stopped, no VMI, no guest, 1');
  });
});

describe('an instance that must leave its node', () => {
  it('migrates when the default eviction strategy becomes LiveMigrate', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('guest', { runStrategy: 'Always' }));
    const { nodeName } = (await plane.get('VirtualMachineInstance', 'guest')).status;
    const url = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/guest/status';
    await plane.server.api.ok('PATCH', url, { body: { status: { evacuationNodeName: nodeName } } });
    await plane.settle();
    assert.deepEqual(await plane.list('VirtualMachineInstanceMigration'), []);
    await configure(plane, { evictionStrategy: 'LiveMigrate' });
    assert.notEqual((await plane.get('VirtualMachineInstance', 'guest')).status.nodeName, nodeName);
  });
});

describe('a claim whose node gets a label', () => {
  it('is bound to the volume that requires it', async (t) => {
    const plane = await startVmPlane(t);
    const { api } = plane.server;
    await plane.beginApply({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'by-hand' },
      provisioner: 'kubernetes.io/no-provisioner',
      volumeBindingMode: 'WaitForFirstConsumer',
    });
    const matchExpressions = [{ key: 'rack', operator: 'In', values: ['a'] }];
    await plane.beginApply({
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'in-rack-a' },
      spec: {
        storageClassName: 'by-hand',
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '64Mi' },
        local: { path: '/disk' },
        nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      },
    });
    const claim = aClaim('data', { storageClassName: 'by-hand' });
    claim.metadata.annotations = { 'volume.kubernetes.io/selected-node': 'node-1' };
    await plane.apply(claim);
    assert.equal((await plane.get('PersistentVolumeClaim', 'data')).status.phase, 'Pending');
    await api.ok('PATCH', '/api/v1/nodes/node-1', { body: { metadata: { labels: { rack: 'a' } } } });
    await plane.settle();
    assert.equal((await plane.get('PersistentVolumeClaim', 'data')).status.phase, 'Bound');
  });
});

describe('every controller', () => {
  it('decides at least once here, is woken by what it reads, and never has overdue work', async (t) => {
    const plane = await startVmPlane(t);
    await exerciseControllers(plane);
    const { api, parts } = plane.server;
    const running = [...api.controllers, ...parts.controllers];
    // The collector follows every served kind with its own informers.
    const ruled = running.filter(({ name }) => name !== 'garbage-collector');
    for (const { name, findOverdue, kindsRead } of ruled) {
      assert.ok(findOverdue !== undefined && kindsRead !== undefined, `${name} runs on startController`);
      assert.notEqual(kindsRead.size, 0, `${name} decides nothing in this test: extend exerciseControllers()`);
    }
    assert.ok(ruled.length >= 30, `there are ${ruled.length} controllers`);
  });
});

/** Gives every controller something to decide; `settle` checks all of them after each step. */
async function exerciseControllers(plane: VmPlane): Promise<void> {
  const { api } = plane.server;
  const create = async (url: string, body: Loose): Promise<void> => {
    await api.ok('POST', url, { body });
    await plane.settle();
  };
  await plane.beginApply({
    apiVersion: 'network.selfsame.io/v1',
    kind: 'GuestNetwork',
    metadata: { name: 'default' },
    spec: { subnets: ['10.50.0.0/24'] },
  });
  await plane.beginApply(aClaim('disk', { storageClassName: 'shared', accessModes: ['ReadWriteMany'] }));
  await plane.beginApply(aClaim('late', { storageClassName: 'shared', accessModes: ['ReadWriteMany'] }));
  await plane.apply(aVmOnClaim('db', 'disk', { runStrategy: 'Always' }));
  const volume = {
    name: 'late',
    disk: { disk: { bus: 'scsi' } },
    volumeSource: { persistentVolumeClaim: { claimName: 'late', hotpluggable: true } },
  };
  assert.equal(await plane.runVerb('addvolume', 'db', volume as Loose), '202');
  await plane.apply(aMigration('move', 'db'));
  await plane.apply(aSnapshot('one', 'db'));
  const { status: taken } = await plane.get('VirtualMachineSnapshot', 'one');
  assert.equal(taken.readyToUse, true, JSON.stringify(taken));
  await plane.runVerb('stop', 'db');
  await plane.apply(aRestore('back', 'db', 'one'));
  await plane.advance(15_000);
  const restore = await plane.get('VirtualMachineRestore', 'back');
  assert.equal(restore.status.complete, true, JSON.stringify(restore.status));
  await plane.apply({ ...(await plane.get('VirtualMachine', 'db')), spec: { runStrategy: 'Always' } });

  const meta = (name: string) => ({ metadata: { name } });
  await create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', ...meta('brief') });
  await api.ok('DELETE', '/api/v1/namespaces/brief');
  await create('/api/v1/namespaces/default/resourcequotas', {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    ...meta('roomy'),
    spec: { hard: { pods: '1k', 'count/secrets': '1k' } },
  });
  const account = { 'kubernetes.io/service-account.name': 'default' };
  await create('/api/v1/namespaces/default/secrets', {
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'kubernetes.io/service-account-token',
    metadata: { name: 'token', annotations: account },
  });
  const selector = { matchLabels: { 'kubevirt.io': 'virt-launcher' } };
  await create('/apis/policy/v1/namespaces/default/poddisruptionbudgets', {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    ...meta('one'),
    spec: { minAvailable: 1, selector },
  });
  await create('/api/v1/namespaces/default/services', {
    apiVersion: 'v1',
    kind: 'Service',
    ...meta('launchers'),
    spec: { ports: [{ port: 22 }], selector: selector.matchLabels },
  });
  const container = { name: 'main', image: 'none' };
  await create('/apis/batch/v1/namespaces/default/jobs', {
    apiVersion: 'batch/v1',
    kind: 'Job',
    ...meta('once'),
    spec: {
      backoffLimit: 0,
      ttlSecondsAfterFinished: 5,
      template: { spec: { restartPolicy: 'Never', containers: [container] } },
    },
  });
  await plane.advance(60_000);
  await plane.killNode('node-2');
  await plane.advance(60_000);
}
