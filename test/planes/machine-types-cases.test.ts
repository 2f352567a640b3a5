/**
 * The Job that changes machine types, with VMs that it cannot change or restart at once: it waits for each or reports
 * it, and continues with the others.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROTECTION_LABEL } from '#api/protection/delete-protection.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';
const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

function aTypedVm(vm: Loose, labels: Loose = {}): Loose {
  vm.metadata.labels = labels;
  vm.spec.template.spec.domain.machine = { type: OLD };
  return vm;
}
const anOldVm = (name: string, runStrategy = 'Always', labels: Loose = {}) =>
  aTypedVm(aVm(name, { runStrategy }), labels);

/** Returns `TYPE in the spec, mark`. */
async function typeAndMark(plane: VmPlane, name: string): Promise<string> {
  const { spec, status } = await plane.get('VirtualMachine', name);
  const mark = status?.machineTypeRestartRequired;
  return `${spec.template.spec.domain.machine?.type ?? 'none'}${mark === undefined ? '' : `, ${mark}`}`;
}
const machineTypeOf = async (plane: VmPlane, name: string) =>
  (await plane.get('VirtualMachineInstance', name)).status.machine.type;

const byGroup = (name: string, restartNow = true) => ({
  glob: '*rhel-8.*',
  labelSelector: `group=${name}`,
  restartNow,
});
const byName = (name: string, restartNow = true) => ({ glob: '*rhel-8.*', name, restartNow });

/** Forbids changes of VMs with the label `frozen`. */
async function forbidFrozenChanges(plane: VmPlane): Promise<void> {
  const resources = ['virtualmachines'];
  const rules = [{ apiGroups: ['kubevirt.io'], apiVersions: ['*'], operations: ['UPDATE'], resources }];
  const frozen = "has(object.metadata.labels) && 'frozen' in object.metadata.labels";
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'frozen' },
    spec: {
      matchConstraints: { resourceRules: rules },
      validations: [{ expression: `!(${frozen})`, message: 'it is frozen' }],
    },
  };
  const binding = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'frozen' },
    spec: { policyName: 'frozen', validationActions: ['Deny'] },
  };
  await plane.server.api.ok('POST', `${ADMISSION}/validatingadmissionpolicies`, { body: policy });
  await plane.server.api.ok('POST', `${ADMISSION}/validatingadmissionpolicybindings`, { body: binding });
  await plane.settle();
}

test('special states of VMs', async (t) => {
  const plane = await startVmPlane(t);
  const createScene = (options: Parameters<typeof TransitionScene.create>[1]) => TransitionScene.create(plane, options);

  await t.test('a VM in a snapshot is changed at once, and restarted afterwards', async () => {
    await plane.apply(aClaim('held-data'));
    await plane.apply(aTypedVm(aVmOnClaim('held', 'held-data', { runStrategy: 'Always' })));
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.apply(aSnapshot('held-1', 'held'));
    const scene = await createScene(byName('held'));
    const running = scene.start();
    await scene.advance(5);
    assert.equal(await typeAndMark(plane, 'held'), 'none');
    const { held = '' } = await scene.states();
    assert.match(held, /^updated: .*until snapshot "held-1" completes/);
    assert.equal(plane.startsOf('held').length, 1);
    for (const { host } of plane.nodes) {
      host.holdCopies = false;
      host.finishCopies();
    }
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.deepEqual([plane.startsOf('held').length, await machineTypeOf(plane, 'held')], [2, NEW]);
  });

  await t.test('a VM that migrates is changed at once, and restarted after the migration', async () => {
    await plane.apply(anOldVm('moving'));
    for (const { host } of plane.nodes) host.holdSends = true;
    await plane.apply({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstanceMigration',
      metadata: { name: 'away' },
      spec: { vmiName: 'moving' },
    });
    assert.equal((await plane.get('VirtualMachine', 'moving')).status.printableStatus, 'Migrating');
    const scene = await createScene(byName('moving'));
    const running = scene.start();
    await scene.advance(5);
    assert.equal(await typeAndMark(plane, 'moving'), 'none');
    assert.deepEqual(await scene.states(), { moving: 'updated: the VM is migrating' });
    for (const { host } of plane.nodes) {
      host.holdSends = false;
      for (const { sending } of plane.guests('moving')) sending?.finish();
    }
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.equal((await plane.get('VirtualMachineInstanceMigration', 'away')).status.phase, 'Succeeded');
    assert.equal(await machineTypeOf(plane, 'moving'), NEW);
  });

  await t.test('a paused VM is marked like any other', async () => {
    await plane.apply(anOldVm('paused'));
    await plane.runVerb('pause', 'paused');
    const scene = await createScene(byName('paused', false));
    const running = scene.start();
    await scene.advance(5);
    assert.equal(await typeAndMark(plane, 'paused'), 'none, true');
    await plane.runVerb('unpause', 'paused');
    await scene.advance(2);
    assert.equal(await typeAndMark(plane, 'paused'), 'none, true');
    await plane.runVerb('restart', 'paused');
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.equal(await typeAndMark(plane, 'paused'), 'q35, false');
  });

  await t.test('a VM that cannot start has its new type at the next attempt', async () => {
    plane.failStarts(
      'looping',
      new HypervisorError('Cannot start domain "looping": no such type', { permanent: true }),
    );
    await plane.apply(anOldVm('looping'));
    assert.equal((await plane.get('VirtualMachine', 'looping')).status.printableStatus, 'CrashLoopBackOff');
    const scene = await createScene(byName('looping'));
    assert.equal(await scene.run(), 'done');
    assert.deepEqual(await scene.states(), { looping: 'done' });
    plane.failStarts('looping');
    await plane.advance(60_000);
    assert.equal(await plane.summaryOf('looping'), 'Running, VMI Running, running, 1');
    assert.deepEqual([await typeAndMark(plane, 'looping'), await machineTypeOf(plane, 'looping')], ['q35', NEW]);
  });

  await t.test(
    'a VM that is being deleted is not in the plan; one that is deleted later is done when it is gone',
    async () => {
      const vm = anOldVm('leaving');
      vm.metadata.finalizers = ['example.org/hold'];
      await plane.apply(vm);
      const scene = await createScene(byName('leaving', false));
      const running = scene.start();
      await scene.advance(5);
      await plane.delete('VirtualMachine', 'leaving');
      await scene.advance(5);
      assert.deepEqual(await scene.states(), { leaving: 'restartRequired: the VM is being deleted' });
      const second = await createScene({ glob: '*', name: 'leaving', target: 'pc-q35-6.2', restartNow: true });
      assert.equal(await second.run(), 'done');
      assert.deepEqual(await second.states(), {});
      await plane.beginApply({ kind: 'VirtualMachine', metadata: { name: 'leaving', finalizers: null } });
      assert.equal(await scene.awaitEnd(running), 'done');
      assert.deepEqual(await scene.states(), { leaving: 'done: the VM was deleted' });
    },
  );

  await t.test('a VM with delete protection is changed and restarted', async () => {
    await plane.apply(anOldVm('ledger', 'Always', { [PROTECTION_LABEL]: 'True' }));
    const scene = await createScene(byName('ledger'));
    assert.equal(await scene.run(), 'done');
    assert.deepEqual(await scene.states(), { ledger: 'done' });
    assert.deepEqual([await typeAndMark(plane, 'ledger'), await machineTypeOf(plane, 'ledger')], ['q35', NEW]);
  });

  await t.test('a guest that will see more than another machine type is reported', async () => {
    await plane.apply(anOldVm('changed'));
    await plane.apply({
      kind: 'VirtualMachine',
      metadata: { name: 'changed' },
      spec: { template: { spec: { domain: { devices: { rng: {} } } } } },
    });
    const scene = await createScene(byName('changed'));
    assert.equal(await scene.run(), 'done');
    const { changed = '' } = await scene.states();
    assert.match(changed, /^done: the guest sees other devices: .*rng/);
    assert.equal(await machineTypeOf(plane, 'changed'), NEW);
  });

  await t.test(
    'for every run strategy, running VMs are restarted or stopped, and stopped ones stay stopped',
    async () => {
      const strategies = ['Always', 'RerunOnFailure', 'Manual', 'Once', 'Halted'];
      const named = (strategy: string) => `by-${strategy.toLowerCase()}`;
      for (const strategy of strategies)
        await plane.beginApply(anOldVm(named(strategy), strategy, { group: 'strategies' }));
      await plane.beginApply(anOldVm('manual-idle', 'Manual', { group: 'strategies' }));
      await plane.settle();
      await plane.runVerb('start', named('Manual'));
      const scene = await createScene(byGroup('strategies'));
      assert.equal(await scene.run(), 'done');
      await plane.settle();
      assert.deepEqual(await scene.states(), {
        'by-always': 'done',
        'by-halted': 'done',
        'by-manual': 'done',
        'by-once': 'done: the VM is stopped',
        'by-rerunonfailure': 'done',
        'manual-idle': 'done',
      });
      for (const strategy of ['Always', 'RerunOnFailure', 'Manual']) {
        assert.equal(await plane.summaryOf(named(strategy)), 'Running, VMI Running, running, 2');
        assert.equal(await typeAndMark(plane, named(strategy)), 'q35');
      }
      for (const name of ['by-halted', 'manual-idle']) {
        assert.deepEqual(
          [await plane.summaryOf(name), await typeAndMark(plane, name)],
          ['Stopped, no VMI, no guest, 0', 'none'],
        );
      }
      assert.equal(await plane.summaryOf('by-once'), 'Stopped, no VMI, no guest, 1');
    },
  );

  await t.test('a VM whose change is refused has failed with the reason, and the others continue', async () => {
    for (const name of ['frozen', 'free'])
      await plane.beginApply(anOldVm(name, 'Always', { group: 'cold', [name]: 'yes' }));
    await plane.settle();
    await forbidFrozenChanges(plane);
    const scene = await createScene(byGroup('cold'));
    assert.equal(await scene.run(), 'done');
    const { frozen = '', free } = await scene.states();
    assert.match(frozen, /^failed: .*it is frozen/);
    assert.equal(free, 'done');
    assert.deepEqual([await typeAndMark(plane, 'frozen'), await typeAndMark(plane, 'free')], [OLD, 'q35']);
    assert.deepEqual([plane.startsOf('frozen').length, plane.startsOf('free').length], [1, 2]);
  });
});
