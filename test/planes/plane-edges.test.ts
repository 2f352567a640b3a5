/** Unusual actions of users on the whole plane: concurrent verbs, deleted pods and claims, lost nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const MANUAL = { runStrategy: 'Manual' };
const RUNNING = 'Running, VMI Running, running, 1';
const AGAIN = 'Running, VMI Running, running, 2';
const STOPPED = 'Stopped, no VMI, no guest, 1';

const podOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.list('Pod')).find(({ metadata }) => metadata.annotations['kubevirt.io/domain'] === vm);

test('unusual actions of users', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('verbs in quick succession are executed in order, or refused', async () => {
    await plane.apply(aVm('hurry', MANUAL));
    assert.equal(await plane.beginVerb('start', 'hurry'), '202');
    assert.match(await plane.beginVerb('start', 'hurry'), /^(500|409) /);
    await plane.settle();
    assert.equal(await plane.summaryOf('hurry'), RUNNING);
    assert.equal(await plane.beginVerb('restart', 'hurry'), '202');
    assert.match(
      await plane.beginVerb('restart', 'hurry'),
      /^500 .*unable to complete request: stop\/start already underway$/,
    );
    await plane.settle();
    assert.equal(await plane.summaryOf('hurry'), AGAIN);
    assert.equal(await plane.beginVerb('restart', 'hurry'), '202');
    assert.equal(await plane.beginVerb('stop', 'hurry'), '202');
    await plane.settle();
    assert.equal(await plane.summaryOf('hurry'), 'Stopped, no VMI, no guest, 2');
  });

  await t.test('a stop right after a start leaves nothing behind', async () => {
    await plane.apply(aVm('brief', { runStrategy: 'Halted' }));
    await plane.beginVerb('start', 'brief');
    await plane.beginVerb('stop', 'brief');
    await plane.settle();
    assert.match(await plane.summaryOf('brief'), /^Stopped, no VMI, no guest, [01]$/);
    assert.equal(await podOf(plane, 'brief'), undefined);
  });

  await t.test('deleting a launcher pod stops its guest, and the VM starts again', async () => {
    await plane.apply(aVm('podless', ALWAYS));
    const guest = plane.guest('podless');
    await plane.delete('Pod', (await podOf(plane, 'podless')).metadata.name);
    assert.deepEqual(guest.record.current, { state: 'ended', how: 'shutdown' });
    assert.equal(await plane.summaryOf('podless'), AGAIN);
    const second = plane.guest('podless');
    second.ignorePowerButton();
    await plane.delete('Pod', (await podOf(plane, 'podless')).metadata.name, { gracePeriodSeconds: 0 });
    assert.deepEqual(second.record.current, { state: 'ended', how: 'destroyed' });
    assert.equal(await plane.summaryOf('podless'), 'Running, VMI Running, running, 3');
  });

  await t.test('a paused guest is shut down like any other', async () => {
    await plane.apply(aVm('asleep', ALWAYS));
    const guest = plane.guest('asleep');
    await plane.runVerb('pause', 'asleep');
    await plane.runVerb('stop', 'asleep');
    assert.deepEqual(guest.record.current, { state: 'ended', how: 'shutdown' });
    assert.equal(await plane.summaryOf('asleep'), STOPPED);
  });

  await t.test('a stop that is requested while the agent is stopped is executed when it is back', async () => {
    await plane.apply(aVm('patient', ALWAYS));
    const [{ node } = { node: '' }] = plane.startsOf('patient');
    await plane.killNode(node);
    await plane.runVerb('stop', 'patient');
    assert.equal(await plane.summaryOf('patient'), 'Stopping, VMI Running, running, 1');
    await plane.startAgent(node);
    assert.equal(await plane.summaryOf('patient'), STOPPED);
  });

  await t.test('a VM runs on the node of its data, and waits for that node', async () => {
    await plane.apply(aClaim('home'));
    await plane.apply(aVmOnClaim('settled', 'home', ALWAYS));
    const [{ node } = { node: '' }] = plane.startsOf('settled');
    await plane.runVerb('stop', 'settled');
    await plane.killNode(node);
    await plane.advance(60_000);
    await plane.runVerb('start', 'settled');
    assert.equal(await plane.summaryOf('settled'), 'ErrorUnschedulable, VMI Scheduling, no guest, 1');
    await plane.startAgent(node);
    await plane.advance(15_000);
    assert.equal(await plane.summaryOf('settled'), AGAIN);
    assert.equal(plane.startsOf('settled')[1]?.node, node);
  });

  await t.test('a claim that is deleted under a running VM is gone after the VM has stopped', async () => {
    await plane.delete('PersistentVolumeClaim', 'home');
    assert.equal(await plane.summaryOf('settled'), AGAIN);
    assert.ok((await plane.get('PersistentVolumeClaim', 'home')).metadata.deletionTimestamp);
    await plane.runVerb('stop', 'settled');
    assert.equal(await plane.find('PersistentVolumeClaim', 'home'), undefined);
    assert.deepEqual(await plane.list('PersistentVolume'), []);
    assert.deepEqual(
      plane.nodes.flatMap(({ volumeNames }) => [...volumeNames]),
      [],
    );
    await plane.runVerb('start', 'settled');
    assert.equal(await plane.summaryOf('settled'), 'ErrorPvcNotFound, VMI Pending, no guest, 2');
    await plane.delete('VirtualMachine', 'settled');
  });

  await t.test('a new VM of the same name is another machine', async () => {
    await plane.apply(aVm('twin', ALWAYS));
    await plane.delete('VirtualMachine', 'twin');
    await plane.apply(aVm('twin', ALWAYS));
    assert.equal(await plane.summaryOf('twin'), AGAIN);
    const [first, second] = plane.startsOf('twin').map(({ machine }) => machine);
    assert.notEqual(first?.firmware.uuid, second?.firmware.uuid);
    const macsOf = (machine: typeof first) =>
      machine?.devices.flatMap((device) => (device.type === 'interface' ? [device.macAddress] : []));
    assert.notDeepEqual(macsOf(first), macsOf(second));
  });

  await t.test('an instance without a VM runs once', async () => {
    const { spec } = aVm('alone').spec.template;
    await plane.apply({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'alone' },
      spec,
    });
    const guest = plane.guest('alone');
    assert.equal(guest.record.current.state, 'running');
    guest.shutDown();
    await plane.settle();
    assert.equal((await plane.get('VirtualMachineInstance', 'alone')).status.phase, 'Succeeded');
    await plane.delete('VirtualMachineInstance', 'alone');
    assert.equal(await plane.find('VirtualMachineInstance', 'alone'), undefined);
    assert.equal(plane.startsOf('alone').length, 1);
  });

  await t.test('a VM does not adopt an instance of its name that is not its own', async () => {
    const { spec } = aVm('taken').spec.template;
    await plane.apply({
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'taken' },
      spec,
    });
    await plane.apply(aVm('taken', ALWAYS));
    const { status } = await plane.get('VirtualMachine', 'taken');
    assert.match(status.conditions.find(({ type }: Loose) => type === 'Failure').message, /does not belong to this VM/);
    await plane.delete('VirtualMachineInstance', 'taken');
    assert.equal(await plane.summaryOf('taken'), AGAIN);
  });

  await t.test('deleting a namespace deletes its VMs, guests first', async () => {
    const guests = plane.nodes.flatMap((node) => node.livingGuests());
    assert.ok(guests.length >= 3);
    assert.equal((await plane.call('DELETE', '/api/v1/namespaces/default')).status, 403);
    await plane.server.api.ok('POST', '/api/v1/namespaces', {
      body: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } },
    });
    const url = '/apis/kubevirt.io/v1/namespaces/team/virtualmachines';
    await plane.server.api.ok('POST', url, { body: aVm('one', ALWAYS) });
    await plane.server.api.ok('POST', url, { body: aVm('two', ALWAYS) });
    await plane.settle();
    const team = plane.nodes.flatMap((node) => [...node.livingGuests('team/one'), ...node.livingGuests('team/two')]);
    assert.equal(team.length, 2);
    await plane.server.api.ok('DELETE', '/api/v1/namespaces/team');
    await plane.advance(30_000);
    for (const { record } of team) assert.deepEqual(record.current, { state: 'ended', how: 'shutdown' });
    assert.equal((await plane.call('GET', '/api/v1/namespaces/team')).status, 404);
    assert.equal(plane.starts.filter(({ name }) => name.startsWith('team/')).length, 2);
  });
});
