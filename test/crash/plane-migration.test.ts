/** Live migration on the whole plane with simulated nodes: what users do, and what they see. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import {
  aMigration,
  assertInvariants,
  migrationPhase,
  startMigratingVm,
  VM,
  locateGuest,
  writeEverywhere,
} from '#test/support/migrating-vm.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const holdSends = (plane: VmPlane, hold: boolean) => {
  for (const { host } of plane.nodes) host.holdSends = hold;
};

describe('a migrating guest', () => {
  it('migrates there and back, restarts and migrates again with the same identity', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'one');
    const before = await plane.get('VirtualMachineInstance', VM);
    const record = await plane.get('VirtualMachineIdentity', VM);
    const { definition } = locateGuest(plane).guest;
    for (const name of ['there', 'back']) {
      const { node } = locateGuest(plane);
      const source = (await plane.list('PersistentVolumeClaim')).find(({ metadata }) =>
        metadata.name.startsWith('persistent-state-for'),
      );
      await plane.apply(aMigration(name));
      assert.equal(await migrationPhase(plane, name), 'Succeeded');
      await assertInvariants(plane, 'one');
      assert.notEqual(locateGuest(plane).node, node);
      const { status } = await plane.get('VirtualMachineInstanceMigration', name);
      const { status: vmi } = await plane.get('VirtualMachineInstance', VM);
      for (const state of [status.migrationState, vmi.migrationState]) {
        assert.equal(state.sourcePersistentStatePVCName, source?.metadata.name);
        assert.match(state.targetPersistentStatePVCName, /^persistent-state-for-db-[a-z0-9]{5}$/);
        assert.deepEqual([state.completed, state.failed ?? false], [true, false]);
      }
      const phases = status.phaseTransitionTimestamps.map(({ phase }: Loose) => phase);
      assert.deepEqual([phases[0], phases.at(-1)], ['Pending', 'Succeeded']);
    }
    const after = await plane.get('VirtualMachineInstance', VM);
    assert.equal(after.metadata.uid, before.metadata.uid);
    for (const field of ['guestStarted', 'deviceHash', 'machine', 'interfaces']) {
      assert.deepEqual(after.status[field], before.status[field], field);
    }
    const { stateClaim, history, ...status } = (await plane.get('VirtualMachineIdentity', VM)).status;
    const { stateClaim: first, history: earlier, ...rest } = record.status;
    assert.deepEqual(status, rest, 'nothing but the claim of its state has changed');
    assert.notEqual(stateClaim, first);
    assert.deepEqual(
      history.slice(earlier.length).map(({ cause }: Loose) => cause),
      ['migration there', 'migration back'],
    );
    const { devices } = locateGuest(plane).guest.definition;
    assert.deepEqual(
      devices.map(({ id, address }: Loose) => [id, address]),
      definition.devices.map(({ id, address }: Loose) => [id, address]),
    );
    assert.equal(plane.startsOf(VM).length, 1);

    await plane.runVerb('restart', VM);
    await assertInvariants(plane, 'one', { restarted: true });
    await writeEverywhere(plane, 'two');
    await plane.apply(aMigration('again'));
    assert.equal(await migrationPhase(plane, 'again'), 'Succeeded');
    await assertInvariants(plane, 'two');
  });

  it('stays on its node when the migration is cancelled, fails, or is refused by the target', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'here');
    const { node } = locateGuest(plane);
    const target = plane.nodes.find((one) => one !== node)!;

    holdSends(plane, true);
    await plane.apply(aMigration('cancelled'));
    assert.equal(await migrationPhase(plane, 'cancelled'), 'Running');
    assert.equal((await plane.get('VirtualMachine', VM)).status.printableStatus, 'Migrating');
    assert.match(await plane.runVerb('pause', VM), /^409 .*VMI is migrating/);
    const second = await plane.post(aMigration('second'));
    assert.match(second.body.message, /in-flight migration detected/);
    await plane.delete('VirtualMachineInstanceMigration', 'cancelled');
    assert.equal(await migrationPhase(plane, 'cancelled'), 'gone');
    await assertInvariants(plane, 'here');

    await plane.apply(aMigration('broken'));
    assert.equal(await migrationPhase(plane, 'broken'), 'Running');
    for (const guest of target.livingGuests(`default/${VM}`)) guest.crash('its QEMU was killed');
    await plane.settle();
    assert.match(await migrationPhase(plane, 'broken'), /^Failed: \S/);
    await assertInvariants(plane, 'here');

    holdSends(plane, false);
    target.failNextIncoming(new HypervisorError('Cannot receive: there is no memory left'));
    await plane.apply(aMigration('refused'));
    await plane.advance(120_000);
    assert.match(await migrationPhase(plane, 'refused'), /^Failed: .*no memory left/);
    await assertInvariants(plane, 'here');
    assert.equal(locateGuest(plane).node, node);
    assert.equal(plane.startsOf(VM).length, 1);

    await plane.apply(aMigration('at last'.replace(' ', '-')));
    assert.equal(await migrationPhase(plane, 'at-last'), 'Succeeded');
    await assertInvariants(plane, 'here');
  });

  it('can be stopped, shut down and deleted during the migration', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'kept');
    holdSends(plane, true);
    await plane.apply(aMigration('stopped'));
    await plane.runVerb('stop', VM);
    await plane.advance(60_000);
    assert.match(await migrationPhase(plane, 'stopped'), /^Failed/);
    assert.deepEqual([plane.guests(VM), await plane.find('VirtualMachineInstance', VM)], [[], undefined]);
    assert.deepEqual(await plane.list('Pod'), []);
    await plane.runVerb('start', VM);
    await assertInvariants(plane, 'kept', { restarted: true });

    await plane.apply(aMigration('down'));
    locateGuest(plane).guest.shutDown();
    await plane.advance(60_000);
    assert.match(await migrationPhase(plane, 'down'), /^Failed/);
    await assertInvariants(plane, 'kept', { restarted: true });

    await plane.apply(aMigration('deleted'));
    await plane.delete('VirtualMachine', VM);
    await plane.advance(120_000);
    assert.deepEqual([await plane.list('Pod'), plane.guests(VM)], [[], []]);
    const claims = await plane.names('PersistentVolumeClaim');
    assert.deepEqual(claims.sort(), ['all', 'root'], 'its state is deleted on both sides');
  });

  it('stays paused', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('still', { runStrategy: 'Always' }));
    await plane.runVerb('pause', 'still');
    await plane.apply(aMigration('still', 'still'));
    assert.equal(await migrationPhase(plane, 'still'), 'Succeeded');
    assert.equal(plane.guest('still').record.current.state, 'paused');
    assert.equal(await plane.runVerb('unpause', 'still'), '200');
    assert.equal(plane.guest('still').record.current.state, 'running');
  });
});

describe('the migration controller', () => {
  it('keeps the limits of parallel migrations', async (t) => {
    const plane = await startVmPlane(t);
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
    for (const name of names) await plane.apply(aVm(name, { runStrategy: 'Always' }, { nodeSelector: {} }));
    holdSends(plane, true);
    for (const name of names) await plane.beginApply(aMigration(name, name));
    await plane.settle();
    const phases = await Promise.all(names.map((name) => migrationPhase(plane, name)));
    assert.ok(phases.filter((phase) => phase === 'Running').length <= 4, phases.join());
    assert.ok(phases.includes('Pending'));
    for (const node of plane.nodes) {
      const sending = node.livingGuests().filter(({ record }) => record.migration?.step === 'sending');
      assert.ok(sending.length <= 2, `${node.name} sends ${sending.length}`);
    }
    for (let round = 0; round < names.length; round++) {
      for (const { host } of plane.nodes) host.finishSends();
      await plane.advance(5000);
    }
    for (const name of names) assert.equal(await migrationPhase(plane, name), 'Succeeded', name);
  });

  it('reports why a VMI cannot be migrated', async (t) => {
    const plane = await startVmPlane(t);
    const volumes = [{ name: 'host', hostDisk: { path: '/x', type: 'Disk' } }];
    const devices = { disks: [{ name: 'host', disk: { bus: 'virtio' } }] };
    await plane.apply(aVm('tied', { runStrategy: 'Always' }, { domain: { devices }, volumes }));
    const { status } = await plane.get('VirtualMachineInstance', 'tied');
    const condition = status.conditions.find(({ type }: Loose) => type === 'LiveMigratable');
    assert.deepEqual([condition.status, condition.reason], ['False', 'DisksNotLiveMigratable']);
    const { body } = await plane.post(aMigration('tied', 'tied'));
    assert.match(body.message, /Cannot migrate VMI, Reason: DisksNotLiveMigratable, Message: .*hostDisk/);
    const none = await plane.post(aMigration('none', 'nobody'));
    assert.match(none.body.message, /nobody/);
  });

  it('waits until no other VMI uses a disk that is copied', async (t) => {
    const plane = await startVmPlane(t);
    await startMigratingVm(plane);
    await writeEverywhere(plane, 'mine');
    const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'root' } }];
    const devices = { disks: [{ name: 'root', cdrom: { bus: 'sata' } }] };
    await plane.apply(aVm('reader', { runStrategy: 'Always' }, { domain: { devices }, volumes }));
    await plane.apply(aMigration('waits'));
    const { status } = await plane.get('VirtualMachineInstanceMigration', 'waits');
    assert.deepEqual([status.phase, status.message], ['Pending', 'volume root is also used by VMI reader']);
    await plane.runVerb('stop', 'reader');
    await plane.advance(60_000);
    assert.equal(await migrationPhase(plane, 'waits'), 'Succeeded');
    await assertInvariants(plane, 'mine');
  });

  it('migrates guests away from a drained node', async (t) => {
    const plane = await startVmPlane(t);
    await plane.apply(aVm('leaves', { runStrategy: 'Always' }, { evictionStrategy: 'LiveMigrate' }));
    const { uid } = (await plane.get('VirtualMachineInstance', 'leaves')).metadata;
    const [pod] = await plane.list('Pod');
    const { nodeName } = pod.spec;
    await plane.beginApply({ kind: 'Node', metadata: { name: nodeName }, spec: { unschedulable: true } });
    const evict = () =>
      plane.call('POST', `/api/v1/namespaces/default/pods/${pod.metadata.name}/eviction`, {
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod.metadata.name } },
      });
    const refused = await evict();
    assert.equal(refused.status, 429, refused.text);
    assert.match(refused.body.message, /Eviction triggered evacuation of VMI "default\/leaves"/);
    await plane.settle();
    const vmi = await plane.get('VirtualMachineInstance', 'leaves');
    assert.equal(vmi.metadata.uid, uid);
    assert.notEqual(vmi.status.nodeName, nodeName);
    assert.equal(vmi.status.evacuationNodeName, undefined);
    assert.equal((await evict()).status, 404, 'the pod has been deleted');
    assert.equal(plane.startsOf('leaves').length, 1);
  });
});
