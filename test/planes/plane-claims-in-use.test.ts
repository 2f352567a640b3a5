/** Two VMs with the same disk, on the whole plane: only one of them runs, and the other one says why it waits. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const IN_USE = 'PersistentVolumeClaim "data" is in use by VirtualMachine "one"; stop it with "virtctl stop one"';

const withDisk = {
  domain: { devices: { disks: [{ name: 'd', disk: { bus: 'virtio' } }] } },
  volumes: [{ name: 'd', persistentVolumeClaim: { claimName: 'data' } }],
};

async function synchronizedOf(plane: VmPlane, vm: string): Promise<Loose> {
  const { status } = await plane.get('VirtualMachine', vm);
  return status.conditions.find(({ type }: Loose) => type === 'Synchronized');
}

test('a disk in use by another VM', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('data', { storageClassName: 'local' }));
  const isRunning = (vm: string) => plane.guests(vm).length > 0;

  await t.test('a second VM does not start, and names the claim and the first VM', async () => {
    await plane.apply(aVm('one', { runStrategy: 'Always' }, withDisk));
    const { body, warnings } = await plane.post(aVm('two', { runStrategy: 'Always' }, withDisk));
    await plane.settle();

    assert.equal(body.metadata.name, 'two');
    assert.deepEqual(warnings, [
      'PersistentVolumeClaim "data" is also a disk of VirtualMachine "one": only one of them can run at a time',
    ]);
    assert.deepEqual([isRunning('one'), isRunning('two')], [true, false]);
    const { status, reason, message } = await synchronizedOf(plane, 'two');
    assert.deepEqual([status, reason], ['False', 'ClaimInUse']);
    assert.equal(message, `Cannot start VirtualMachineInstance "two": ${IN_USE}, or use another claim`);
    const events = await plane.list('Event');
    assert.ok(events.some((event) => event.reason === 'ClaimInUse' && event.message === message));
    assert.equal((await plane.names('Pod')).length, 1);
  });

  await t.test('the other VM starts when the first one has stopped, and the first one waits then', async () => {
    await plane.runVerb('stop', 'one');
    assert.deepEqual([isRunning('one'), isRunning('two')], [false, true]);
    assert.equal(await synchronizedOf(plane, 'two'), undefined);
    await plane.runVerb('start', 'one');
    assert.deepEqual([isRunning('one'), isRunning('two')], [false, true]);
    assert.match((await synchronizedOf(plane, 'one')).message, /is in use by VirtualMachine "two"/);
  });

  await t.test('of VMs that are created together, one runs', async () => {
    const names = ['a', 'b', 'c', 'd', 'e', 'f'];
    await plane.apply(aClaim('busy', { storageClassName: 'local' }));
    const volumes = [{ name: 'd', persistentVolumeClaim: { claimName: 'busy' } }];
    await Promise.all(names.map((name) => plane.post(aVm(name, { runStrategy: 'Always' }, { ...withDisk, volumes }))));
    await plane.settle();
    assert.equal(names.filter(isRunning).length, 1);
  });
});
