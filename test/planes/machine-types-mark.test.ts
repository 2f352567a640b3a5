/**
 * The mark machineTypeRestartRequired is removed when the instance that it refers to is gone, whatever happened to the
 * Job that set it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const OLD = 'pc-q35-rhel8.2.0';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';

const anOldVm = (name: string, type = OLD) => aVm(name, { runStrategy: 'Always' }, { domain: { machine: { type } } });

async function markOf(plane: VmPlane, name: string): Promise<Loose> {
  const { machineTypeRestartRequired: mark, machineTypeRestartInstanceUID: instance } = (
    await plane.get('VirtualMachine', name)
  ).status;
  return instance === undefined ? mark : `${mark} for ${instance}`;
}

const uidOf = async (plane: VmPlane, name: string) => (await plane.get('VirtualMachineInstance', name)).metadata.uid;

/** Sets the mark as an older version or a third-party tool does: without the instance that it refers to. */
async function markByHand(plane: VmPlane, name: string): Promise<void> {
  const status = { machineTypeRestartRequired: true };
  await plane.server.api.ok('PATCH', `${VMS}/${name}/status`, { body: { status } });
}

/** Runs a Job that marks its VM, and deletes the Job with kubectl, as the proposal describes. */
async function markAndDeleteJob(plane: VmPlane, name: string): Promise<void> {
  const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', name });
  const running = scene.start();
  await scene.advance(4);
  assert.equal(await markOf(plane, name), `true for ${await uidOf(plane, name)}`);
  await running.kill();
  const { namespace, name: job } = scene.job;
  await plane.server.api.ok(
    'DELETE',
    `/apis/batch/v1/namespaces/${namespace}/jobs/${job}?propagationPolicy=Background`,
  );
  await plane.settle();
}

test('a mark whose Job is gone', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('stays while the guest runs on, through a restart of the server and a migration', async () => {
    await plane.apply(anOldVm('restarted'));
    await markAndDeleteJob(plane, 'restarted');
    await plane.restartServer();
    const kind = 'VirtualMachineInstanceMigration';
    await plane.apply({ apiVersion: 'kubevirt.io/v1', kind, metadata: { name: 'm' }, spec: { vmiName: 'restarted' } });
    assert.equal((await plane.get(kind, 'm')).status.phase, 'Succeeded');
    assert.equal(await markOf(plane, 'restarted'), `true for ${await uidOf(plane, 'restarted')}`);
  });

  await t.test('is removed when the VM is restarted', async () => {
    await plane.runVerb('restart', 'restarted');
    assert.equal(await markOf(plane, 'restarted'), false);
  });

  await t.test('is removed when the VM is stopped, and does not come back', async () => {
    await plane.apply(anOldVm('stopped'));
    await markAndDeleteJob(plane, 'stopped');
    await plane.runVerb('stop', 'stopped');
    assert.equal(await markOf(plane, 'stopped'), false);
    await plane.runVerb('start', 'stopped');
    assert.equal(await markOf(plane, 'stopped'), false);
  });

  await t.test('is removed when the guest has shut down', async () => {
    const vm = anOldVm('ended');
    vm.spec.runStrategy = 'Once';
    await plane.apply(vm);
    await markAndDeleteJob(plane, 'ended');
    plane.guest('ended').shutDown();
    await plane.settle();
    assert.equal(await markOf(plane, 'ended'), false);
  });

  await t.test('is removed if the restart happened while no controller was running', async () => {
    await plane.apply(anOldVm('unseen'));
    await markAndDeleteJob(plane, 'unseen');
    const { status } = await plane.get('VirtualMachine', 'unseen');
    await plane.runVerb('restart', 'unseen');
    // As it was stored before the restart.
    const body = { status: { ...status, machineTypeRestartRequired: true } };
    await plane.server.api.ok('PATCH', `${VMS}/unseen/status`, { body });
    await plane.settle();
    assert.equal(await markOf(plane, 'unseen'), false);
  });
});

test('a mark that names no instance', async (t) => {
  const plane = await startVmPlane(t);

  await t.test(
    'stays while the guest runs on a type that differs from its spec, until that guest is gone',
    async () => {
      await plane.apply(anOldVm('kept'));
      const template = { spec: { domain: { machine: { type: null } } } };
      await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'kept' }, spec: { template } });
      await markByHand(plane, 'kept');
      await plane.settle();
      assert.equal(await markOf(plane, 'kept'), `true for ${await uidOf(plane, 'kept')}`);
      await plane.runVerb('restart', 'kept');
      assert.equal(await markOf(plane, 'kept'), false);
    },
  );

  await t.test('is removed if the guest runs on the type of its spec', async () => {
    await plane.apply(anOldVm('new', 'pc-q35-rhel9.0.0'));
    await markByHand(plane, 'new');
    await plane.settle();
    assert.equal(await markOf(plane, 'new'), false);
  });

  await t.test('is removed if the VM does not run', async () => {
    await plane.apply(aVm('off', { runStrategy: 'Halted' }));
    await markByHand(plane, 'off');
    await plane.settle();
    assert.equal(await markOf(plane, 'off'), false);
  });

  await t.test('of a VM with an alias is checked by the next Job, which knows the meaning of the alias', async () => {
    await plane.apply(aVm('alias', { runStrategy: 'Always' }, { domain: { machine: { type: 'q35' } } }));
    await markByHand(plane, 'alias');
    await plane.settle();
    assert.equal(await markOf(plane, 'alias'), `true for ${await uidOf(plane, 'alias')}`);
  });
});

test('a Job first checks every VM with the mark, regardless of its author and namespace', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aVm('alias', { runStrategy: 'Always' }, { domain: { machine: { type: 'q35' } } }));
  await plane.apply(anOldVm('kept'));
  const template = { spec: { domain: { machine: { type: null } } } };
  await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'kept' }, spec: { template } });
  for (const name of ['alias', 'kept']) await markByHand(plane, name);
  const scene = await TransitionScene.create(plane, { glob: 'nothing', namespace: 'kube-system' });
  assert.equal(await scene.run(), 'done');
  await plane.settle();
  assert.equal(await markOf(plane, 'alias'), false);
  assert.equal(await markOf(plane, 'kept'), `true for ${await uidOf(plane, 'kept')}`);
});
