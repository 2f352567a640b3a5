/** The Job that changes machine types, on the whole simulated plane, with VMs in each state. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const OLD = 'pc-q35-rhel8.2.0';
const GLOB = '*rhel-8.*';

const typed = (name: string, runStrategy: string, type = OLD, labels: Loose = {}): Loose => {
  const vm = aVm(name, { runStrategy }, { domain: { machine: { type } } });
  return { ...vm, metadata: { name, labels } };
};
const typeOf = (vm: Loose) => vm.spec.template.spec.domain.machine?.type;
const markOf = async (plane: VmPlane, name: string) =>
  (await plane.get('VirtualMachine', name)).status.machineTypeRestartRequired;
const runsOn = async (plane: VmPlane, name: string) =>
  (await plane.get('VirtualMachineInstance', name)).status.machine.type;

test('VMs in each state', async (t) => {
  const plane = await startVmPlane(t);
  const only = (name: string) => ({ glob: GLOB, name });

  await t.test('a Job without VMs completes', async () => {
    assert.equal(await (await TransitionScene.create(plane, { glob: GLOB })).run(), 'done');
  });

  await t.test('the type of a stopped VM is removed, and other types are kept', async () => {
    await plane.beginApply(typed('stopped', 'Halted'));
    await plane.apply(typed('newer', 'Halted', 'pc-q35-7.2'));
    const scene = await TransitionScene.create(plane, { glob: GLOB });
    assert.equal(await scene.run(), 'done');
    assert.equal(typeOf(await plane.get('VirtualMachine', 'stopped')), undefined);
    assert.equal(typeOf(await plane.get('VirtualMachine', 'newer')), 'pc-q35-7.2');
    assert.deepEqual(await scene.states(), { stopped: 'done' });
    assert.equal(await markOf(plane, 'stopped'), undefined);
  });

  await t.test('a running VM is marked until a user restarts it, and keeps its devices', async () => {
    await plane.apply(typed('marked', 'Always'));
    const before = await plane.get('VirtualMachineIdentity', 'marked');
    const scene = await TransitionScene.create(plane, only('marked'));
    const running = scene.start();
    await scene.advance(5);
    assert.equal(await markOf(plane, 'marked'), true);
    assert.equal(typeOf(await plane.get('VirtualMachine', 'marked')), undefined);
    assert.deepEqual(await scene.states(), { marked: 'restartRequired' });
    assert.equal(running.outcome, undefined);
    assert.equal(await runsOn(plane, 'marked'), OLD);
    await plane.runVerb('restart', 'marked');
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.equal(await markOf(plane, 'marked'), false);
    assert.equal(await runsOn(plane, 'marked'), 'pc-q35-rhel9.2.0');
    assert.deepEqual(await scene.states(), { marked: 'done' });
    const { status } = await plane.get('VirtualMachineIdentity', 'marked');
    assert.deepEqual(status.devices, before.status.devices);
  });

  await t.test('a marked VM is done when it is stopped', async () => {
    await plane.apply(typed('ended', 'Always'));
    const scene = await TransitionScene.create(plane, only('ended'));
    const running = scene.start();
    await scene.advance(5);
    await plane.runVerb('stop', 'ended');
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.equal(await markOf(plane, 'ended'), false);
    assert.deepEqual(await scene.states(), { ended: 'done: the VM is stopped' });
  });

  await t.test('with --restart-now no VM is marked, and a VM with strategy Once is stopped', async () => {
    for (const strategy of ['Always', 'Manual', 'Once', 'Halted']) {
      await plane.beginApply(typed(strategy.toLowerCase(), strategy, OLD, { group: 'now' }));
    }
    await plane.settle();
    await plane.runVerb('start', 'manual');
    const scene = await TransitionScene.create(plane, {
      glob: GLOB,
      restartNow: true,
      labelSelector: 'group in (now)',
    });
    assert.equal(await scene.run(), 'done');
    await plane.settle();
    assert.deepEqual(await scene.states(), {
      always: 'done',
      halted: 'done',
      manual: 'done',
      once: 'done: the VM is stopped',
    });
    assert.equal(await plane.summaryOf('always'), 'Running, VMI Running, running, 2');
    assert.equal(await plane.summaryOf('manual'), 'Running, VMI Running, running, 2');
    assert.equal(await plane.summaryOf('once'), 'Stopped, no VMI, no guest, 1');
    for (const name of ['always', 'manual', 'once', 'halted']) assert.equal(await markOf(plane, name), undefined);
    assert.equal(await runsOn(plane, 'always'), 'pc-q35-rhel9.2.0');
  });

  await t.test('a paused VM is changed at once, and restarted when it is unpaused', async () => {
    await plane.apply(typed('paused', 'Always'));
    await plane.runVerb('pause', 'paused');
    const scene = await TransitionScene.create(plane, { ...only('paused'), restartNow: true });
    const running = scene.start();
    await scene.advance(5);
    assert.deepEqual(await scene.states(), { paused: 'updated: the VM is paused' });
    assert.equal(plane.startsOf('paused').length, 1);
    await plane.runVerb('unpause', 'paused');
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.equal(plane.startsOf('paused').length, 2);
  });

  await t.test('a VM that a user restarts at the same time is not restarted again', async () => {
    for (const strategy of ['Always', 'Manual']) {
      const name = `raced-${strategy.toLowerCase()}`;
      await plane.apply(typed(name, strategy));
      if (strategy === 'Manual') await plane.runVerb('start', name);
      const scene = await TransitionScene.create(plane, { ...only(name), restartNow: true });
      const before = plane.startsOf(name).length;
      const onVerb = async () => {
        if (plane.startsOf(name).length > before) return;
        assert.equal(await plane.beginVerb('restart', name), '202');
        while (plane.startsOf(name).length === before) await setImmediate();
      };
      assert.equal(await scene.run({ onVerb }), 'done');
      await plane.settle();
      assert.equal(plane.startsOf(name).length, before + 1, strategy);
      assert.deepEqual(await scene.states(), { [name]: 'done' });
      assert.equal(await runsOn(plane, name), 'pc-q35-rhel9.2.0');
    }
  });

  await t.test('a VM that a user stops at the same time stays stopped', async () => {
    await plane.apply(typed('left', 'Manual'));
    await plane.runVerb('start', 'left');
    const scene = await TransitionScene.create(plane, { ...only('left'), restartNow: true });
    const onVerb = async () => {
      if (plane.guests('left').length === 0) return;
      assert.equal(await plane.beginVerb('stop', 'left'), '202');
      while ((await plane.find('VirtualMachineInstance', 'left')) !== undefined) await setImmediate();
    };
    assert.equal(await scene.run({ onVerb }), 'done');
    await plane.settle();
    assert.equal(await plane.summaryOf('left'), 'Stopped, no VMI, no guest, 1');
    assert.deepEqual(await scene.states(), { left: 'done: the VM is stopped' });
  });

  await t.test('a VM with an alias is not restarted if it runs on the newest type', async () => {
    await plane.apply(typed('alias', 'Always', 'q35'));
    const scene = await TransitionScene.create(plane, { glob: '*q35-7.2', name: 'alias', restartNow: true });
    assert.equal(await scene.run(), 'done');
    assert.deepEqual(await scene.states(), {});
    assert.equal(plane.startsOf('alias').length, 1);
  });

  await t.test('the target type is set, and an unsupported target is refused before any change', async () => {
    await plane.apply(typed('target', 'Halted'));
    const wrong = await TransitionScene.create(plane, { ...only('target'), target: 'virt-9.9' });
    await assert.rejects(wrong.run(), /JOB_TARGET is not supported: virt-9.9/);
    const scene = await TransitionScene.create(plane, { ...only('target'), target: 'pc-q35-7.1' });
    assert.equal(await scene.run(), 'done');
    assert.equal(typeOf(await plane.get('VirtualMachine', 'target')), 'pc-q35-7.1');
  });

  await t.test('a VM that is deleted meanwhile is done', async () => {
    await plane.apply(typed('gone', 'Always'));
    const scene = await TransitionScene.create(plane, only('gone'));
    const running = scene.start();
    await scene.advance(5);
    await plane.delete('VirtualMachine', 'gone');
    assert.equal(await scene.awaitEnd(running), 'done');
    assert.deepEqual(await scene.states(), { gone: 'done: the VM was deleted' });
  });
});

test('more failures than allowed end the job, and no other VM is changed', async (t) => {
  const plane = await startVmPlane(t);
  for (const name of ['bad', 'later']) await plane.apply(typed(name, 'Always'));
  const options = { glob: GLOB, restartNow: true, maxRestarts: 1, maxFailures: 0 };
  const scene = await TransitionScene.create(plane, options);
  plane.failStarts('bad', new HypervisorError('Cannot start domain "bad": QEMU exited with code 1'));
  assert.equal(await scene.run(), 'failed');
  const states = await scene.states();
  assert.match(
    states['bad'] ?? '',
    /^failed: not running 15 minutes after the restart was requested: the VM is Starting/,
  );
  assert.equal(states['later'], 'updated');
  assert.equal(plane.startsOf('later').length, 1);
  assert.equal(await scene.run({ killAfter: 1 }), 'failed', 'each later run fails without a write');
  assert.equal(plane.startsOf('later').length, 1);
});

test('marks survive kills of the job and of the server, and are removed when users restart their VMs', async (t) => {
  const plane = await startVmPlane(t);
  const names = ['a', 'b', 'c', 'd', 'e'];
  for (const name of names) await plane.beginApply(typed(name, 'Always'));
  await plane.settle();
  const scene = await TransitionScene.create(plane, { glob: GLOB });
  for (const name of names) {
    const killed = scene.start({ killAfter: 1 });
    await scene.awaitEnd(killed);
    const running = scene.start();
    await scene.advance(3);
    await plane.restartServer();
    await scene.advance(40);
    assert.equal(running.outcome, undefined);
    await running.kill();
    assert.equal(await markOf(plane, name), true);
    await plane.runVerb('restart', name);
  }
  assert.equal(await scene.run(), 'done');
  for (const name of names) {
    assert.equal(await markOf(plane, name), false);
    assert.equal(plane.startsOf(name).length, 2);
    assert.equal(await runsOn(plane, name), 'pc-q35-rhel9.2.0');
  }
});
