/**
 * The life of VMs on the whole plane: their identity from start to start, and how they stop, change and are deleted.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const RUNNING = 'Running, VMI Running, running, 1';
const STOPPED = 'Stopped, no VMI, no guest, 1';

const conditionOf = async (plane: VmPlane, kind: string, name: string, type: string): Promise<Loose> =>
  (await plane.get(kind, name)).status.conditions.find((condition: Loose) => condition.type === type);

/** Returns what the guest can notice of its machine at a start. */
function machineOf(plane: VmPlane, vm: string, start: number): Loose {
  return plane.startsOf(vm)[start]!.machine;
}

test('the life of VMs', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('a VM is the same machine at every start', async () => {
    await plane.apply(aClaim('db-data'));
    await plane.apply(aVmOnClaim('db', 'db-data', ALWAYS));
    const record = await plane.get('VirtualMachineIdentity', 'db');
    await plane.runVerb('restart', 'db');
    plane.guest('db').crash('QEMU exited with code 1');
    await plane.settle();
    await plane.runVerb('stop', 'db');
    await plane.runVerb('start', 'db');
    assert.equal(await plane.summaryOf('db'), 'Running, VMI Running, running, 4');
    for (const start of [1, 2, 3]) assert.deepEqual(machineOf(plane, 'db', start), machineOf(plane, 'db', 0));
    const { firmware, devices } = machineOf(plane, 'db', 3);
    assert.equal(firmware.uuid, record.spec.firmware.uuid);
    const nic = devices.find(({ type }: Loose) => type === 'interface');
    assert.equal(nic.macAddress, record.spec.interfaces[0].macAddress);
    const { spec, status } = await plane.get('VirtualMachineIdentity', 'db');
    assert.deepEqual(spec, record.spec);
    assert.deepEqual(status.devices, record.status.devices);
    const vmi = await plane.get('VirtualMachineInstance', 'db');
    assert.equal(status.instance, vmi.metadata.uid);
    assert.match(status.deviceHash, /^[0-9a-f]{64}$/);
    assert.deepEqual([vmi.status.deviceHash, record.status.deviceHash], [status.deviceHash, status.deviceHash]);
  });

  await t.test('a new device never takes the place of another, also after one is removed', async () => {
    const nics = (...names: string[]) => ({
      domain: { devices: { interfaces: names.map((name) => ({ name, masquerade: {} })) } },
      networks: names.map((name) => ({ name, pod: {} })),
    });
    const addressOf = (id: string): Loose =>
      plane.guest('nics').definition.devices.find((device) => device.id === id)?.address;
    const placeOf = (name: string) => addressOf(`nic-${name}`);
    const change = async (template: Loose) => {
      await plane.apply(aVm('nics', ALWAYS, template));
      await plane.runVerb('restart', 'nics');
    };
    const disk = (name: string) => ({ name, disk: { bus: 'virtio' } });
    const disks = (...names: string[]): Loose => ({
      domain: { devices: { disks: names.map(disk) } },
      volumes: names.map((name) => ({ name, emptyDisk: { capacity: '1Mi' } })),
    });
    const diskAt = (name: string) => addressOf(`disk-${name}`);
    await plane.apply(aVm('nics', ALWAYS, { ...nics('default'), ...disks('a', 'b') }));
    const [nic, a, b] = [placeOf('default'), diskAt('a'), diskAt('b')];
    await change(disks('c', 'b'));
    assert.deepEqual([placeOf('default'), diskAt('b'), diskAt('a')], [nic, b, undefined]);
    const c = diskAt('c');
    assert.ok(c !== undefined && ![nic, a, b].some(({ bus }) => bus === c.bus), JSON.stringify(c));
    await change(disks('a', 'c', 'b'));
    assert.deepEqual([diskAt('a'), diskAt('b'), diskAt('c')], [a, b, c]);
    // Also the place of a device that was removed long before: a guest would mistake the new device for the old one.
    await change(disks('b', 'c'));
    await change(disks('b', 'c', 'd'));
    const d = diskAt('d');
    assert.ok(d !== undefined && ![nic, a, b, c].some(({ bus }) => bus === d.bus), JSON.stringify(d));
    await change(disks('a', 'd', 'c', 'b'));
    assert.deepEqual([diskAt('a'), diskAt('d')], [a, d]);
  });

  await t.test('a change waits for a restart, and is reported until then', async () => {
    await plane.apply(aVm('changed', ALWAYS));
    const memory = (guest: string) => ({
      kind: 'VirtualMachine',
      metadata: { name: 'changed' },
      spec: { template: { spec: { domain: { memory: { guest } } } } },
    });
    const restartRequired = async () =>
      (await conditionOf(plane, 'VirtualMachine', 'changed', 'RestartRequired'))?.status;
    await plane.apply(memory('256Mi'));
    assert.equal(await restartRequired(), 'True');
    await plane.apply(memory('128Mi'));
    assert.equal(await restartRequired(), undefined);
    await plane.apply(memory('256Mi'));
    await plane.runVerb('restart', 'changed');
    assert.equal(await restartRequired(), undefined);
    assert.equal(machineOf(plane, 'changed', 1).memoryKib, 256 * 1024);
  });

  await t.test('verbs reach the guest, and its state is reported', async () => {
    await plane.apply(aVm('verbs', ALWAYS));
    const runVerb = async (verb: string) => [
      await plane.runVerb(verb, 'verbs'),
      plane.guest('verbs').record.current.state,
    ];
    const refusalMessage = (message: string) =>
      `409 Operation cannot be fulfilled on virtualmachineinstance.kubevirt.io "verbs": ${message}`;
    assert.deepEqual(await runVerb('unpause'), [refusalMessage('VMI is not paused'), 'running']);
    assert.deepEqual(await runVerb('pause'), ['200', 'paused']);
    assert.equal(await plane.summaryOf('verbs'), 'Paused, VMI Running, paused, 1');
    assert.deepEqual(await runVerb('pause'), [refusalMessage('VMI is already paused'), 'paused']);
    assert.deepEqual(await runVerb('softreboot'), [refusalMessage('VMI is paused'), 'paused']);
    assert.deepEqual(await runVerb('unpause'), ['200', 'running']);
    assert.equal(await plane.summaryOf('verbs'), RUNNING);
    for (const verb of ['softreboot', 'reset']) assert.deepEqual(await runVerb(verb), ['200', 'running']);
    assert.equal(plane.guest('verbs').record.said.match(/Restarting/g)?.length, 2);
    assert.equal(await plane.summaryOf('verbs'), RUNNING);
  });

  await t.test('a guest that ignores the power button is powered off when its grace period ends', async () => {
    await plane.apply(aVm('stubborn', ALWAYS, { terminationGracePeriodSeconds: 60 }));
    const guest = plane.guest('stubborn');
    guest.ignorePowerButton();
    await plane.runVerb('stop', 'stubborn');
    await plane.advance(55_000);
    assert.equal(await plane.summaryOf('stubborn'), 'Stopping, VMI Running, running, 1');
    await plane.advance(10_000);
    assert.equal(await plane.summaryOf('stubborn'), STOPPED);
    assert.deepEqual(guest.record.current, { state: 'ended', how: 'destroyed' });
  });

  await t.test('a forced stop takes no time, also during another stop', async () => {
    await plane.apply(aVm('forced', ALWAYS, { terminationGracePeriodSeconds: 600 }));
    const guest = plane.guest('forced');
    guest.ignorePowerButton();
    await plane.runVerb('stop', 'forced');
    assert.equal(await plane.summaryOf('forced'), 'Stopping, VMI Running, running, 1');
    assert.equal(await plane.runVerb('stop', 'forced', { gracePeriod: 0 }), '202');
    assert.equal(await plane.summaryOf('forced'), STOPPED);
    assert.deepEqual(guest.record.current, { state: 'ended', how: 'destroyed' });
  });

  await t.test('a forced restart powers the guest off', async () => {
    await plane.apply(aVm('again', ALWAYS));
    const guest = plane.guest('again');
    guest.ignorePowerButton();
    assert.equal(await plane.runVerb('restart', 'again', { gracePeriodSeconds: 0 }), '202');
    assert.equal(await plane.summaryOf('again'), 'Running, VMI Running, running, 2');
    assert.equal(guest.record.current.state, 'ended');
  });

  for (const propagationPolicy of ['Background', 'Foreground']) {
    await t.test(`a VM that is deleted (${propagationPolicy}) is gone after its guest`, async () => {
      const vm = `gone-${propagationPolicy}`.toLowerCase();
      await plane.apply(aVm(vm, ALWAYS));
      const guest = plane.guest(vm);
      guest.ignorePowerButton();
      await plane.delete('VirtualMachine', vm, { propagationPolicy });
      assert.equal(await plane.summaryOf(vm), 'Terminating, VMI Running, running, 1');
      guest.shutDown();
      await plane.settle();
      for (const kind of ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineIdentity']) {
        assert.equal(await plane.find(kind, vm), undefined, kind);
      }
      assert.equal((await plane.list('Pod')).filter(({ metadata }) => metadata.name.includes(vm)).length, 0);
    });
  }

  await t.test('a VM that is deleted with Orphan leaves its guest running', async () => {
    await plane.apply(aVm('left', ALWAYS));
    const guest = plane.guest('left');
    await plane.delete('VirtualMachine', 'left', { propagationPolicy: 'Orphan' });
    assert.equal(await plane.find('VirtualMachine', 'left'), undefined);
    const { metadata, status } = await plane.get('VirtualMachineInstance', 'left');
    assert.deepEqual([metadata.ownerReferences, status.phase], [undefined, 'Running']);
    assert.equal(plane.guest('left'), guest);
    await plane.delete('VirtualMachineInstance', 'left');
    assert.equal(await plane.find('VirtualMachineInstance', 'left'), undefined);
    assert.deepEqual(guest.record.current, { state: 'ended', how: 'shutdown' });
  });

  await t.test(
    "the next VM of the name adopts the guest and its record, which continues with the guest's devices",
    async () => {
      await plane.apply(aVm('heir', ALWAYS));
      await plane.delete('VirtualMachine', 'heir', { propagationPolicy: 'Orphan' });
      const { metadata: before } = await plane.get('VirtualMachineIdentity', 'heir');
      assert.equal(before.ownerReferences, undefined);
      await plane.apply(aVm('heir', ALWAYS));
      const [vm, vmi, record] = await Promise.all(
        ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineIdentity'].map((kind) => plane.get(kind, 'heir')),
      );
      const owners = [vmi, record].map((object) =>
        object?.metadata.ownerReferences?.map((owner: { uid: string }) => owner.uid),
      );
      assert.deepEqual(owners, [[vm?.metadata.uid], [vm?.metadata.uid]]);
      assert.deepEqual([record?.metadata.uid, record?.status.instance], [before.uid, vmi?.metadata.uid]);
      await plane.delete('VirtualMachine', 'heir');
    },
  );

  await t.test('restarts of agents and servers do not affect guests', async () => {
    await plane.apply(aVm('steady', ALWAYS));
    const before = plane.nodes.flatMap((node) =>
      node.livingGuests().map(({ record }) => [record.id, record.startedAtMs]),
    );
    assert.ok(before.length > 3);
    const { length } = plane.starts;
    const pods = async () => new Set((await plane.list('Pod')).map(({ metadata }) => metadata.uid));
    const podsBefore = await pods();
    for (const node of plane.nodes) await plane.restartAgent(node.name);
    await plane.restartServer();
    assert.deepEqual(
      plane.nodes.flatMap((node) => node.livingGuests().map(({ record }) => [record.id, record.startedAtMs])),
      before,
    );
    assert.equal(plane.starts.length, length);
    assert.deepEqual(await pods(), podsBefore);
    assert.equal(await plane.summaryOf('steady'), RUNNING);
    await plane.runVerb('stop', 'steady');
    assert.equal(await plane.summaryOf('steady'), STOPPED);
  });
});
