/** Snapshots and restores on the whole plane: what a VM was, who it was and what was on its disks comes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/legacy-uuid.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/persistent-state.ts';
import { withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { aRestore, aSnapshot, contentOf, diskOf, heldBy, writeDisk } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const HALTED = { runStrategy: 'Halted' };

const firmwareOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.get('VirtualMachine', vm)).spec.template.spec.domain.firmware;
const conditionOf = ({ status }: Loose, type: string): Loose =>
  status?.conditions?.find((one: Loose) => one.type === type);
const machineOf = (plane: VmPlane, vm: string): Loose => plane.startsOf(vm).at(-1)!.machine;
/** As the guest knows it, but for where its disks lie on the node. */
const identityOf = (plane: VmPlane, vm: string): Loose => {
  const { firmware, devices } = machineOf(plane, vm);
  return { firmware, devices: devices.map((device: Loose) => ({ ...device, source: undefined })) };
};

const aKeeper = (name: string, claim: string): Loose => {
  const vm = aVmOnClaim(name, claim, ALWAYS);
  vm.spec.template.spec.domain.devices.tpm = { persistent: true };
  return vm;
};

/** The only claim that is marked as the state of the VM, and where its data is. */
async function stateOf(plane: VmPlane, vm: string) {
  const claims = await plane.list('PersistentVolumeClaim');
  const [claim, ...more] = claims.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === vm);
  assert.deepEqual(more, []);
  const volume = await plane.get('PersistentVolume', claim!.spec.volumeName);
  const home = volume.metadata.annotations[VOLUME_NODE_ANNOTATION] ?? plane.nodes[0]!.name;
  return { claim: claim!.metadata.name, volume: volume.metadata.name, node: plane.node(home) };
}

async function made(plane: VmPlane, name: string, spec: Loose = ALWAYS): Promise<void> {
  await plane.apply(aClaim(`${name}-data`));
  await plane.apply(aVmOnClaim(name, `${name}-data`, spec));
}

async function succeeded(plane: VmPlane, name: string): Promise<Loose> {
  const snapshot = await plane.get('VirtualMachineSnapshot', name);
  assert.equal(snapshot.status?.phase, 'Succeeded', JSON.stringify(snapshot.status));
  assert.equal(snapshot.status.readyToUse, true);
  return snapshot;
}

async function complete(plane: VmPlane, name: string): Promise<Loose> {
  const restore = await plane.get('VirtualMachineRestore', name);
  assert.equal(restore.status?.complete, true, JSON.stringify(restore.status));
  return restore;
}

test('snapshots and restores', async (t) => {
  const plane = await startVmPlane(t);

  await t.test('of a running VM: the guest goes on, and a restore in place brings all of it back', async () => {
    await made(plane, 'db');
    await writeDisk(plane, 'db', 'precious');
    const before = await firmwareOf(plane, 'db');
    const seen = identityOf(plane, 'db');
    await plane.apply(aSnapshot('before', 'db'));
    const snapshot = await succeeded(plane, 'before');
    assert.deepEqual(snapshot.status.snapshotVolumes.includedVolumes, ['root']);
    assert.ok(snapshot.status.indications.includes('Online'));
    assert.equal((await plane.get('VirtualMachine', 'db')).status.snapshotInProgress, undefined);
    assert.equal(plane.startsOf('db').length, 1, 'the guest was not restarted');

    await writeDisk(plane, 'db', 'wiped');
    await plane.apply(aRestore('back', 'db', 'before', { targetReadinessPolicy: 'StopTarget' }));
    await complete(plane, 'back');
    assert.equal(await diskOf(plane, 'db'), 'precious');
    assert.deepEqual(await firmwareOf(plane, 'db'), before);
    await plane.ask('start', 'db');
    assert.deepEqual(identityOf(plane, 'db'), seen, 'the selfsame machine');
  });

  await t.test('row 8: of a VM that is gone: the same machine is made again', async () => {
    await made(plane, 'gone');
    await writeDisk(plane, 'gone', 'kept');
    const [before, seen] = [await firmwareOf(plane, 'gone'), identityOf(plane, 'gone')];
    await plane.apply(aSnapshot('gone-1', 'gone'));
    await succeeded(plane, 'gone-1');
    await plane.delete('VirtualMachine', 'gone');
    await plane.delete('PersistentVolumeClaim', 'gone-data');
    assert.equal(await plane.find('VirtualMachine', 'gone'), undefined);

    await plane.apply(aRestore('gone-back', 'gone', 'gone-1'));
    await complete(plane, 'gone-back');
    assert.equal((await plane.get('VirtualMachine', 'gone')).spec.runStrategy, 'Halted');
    assert.deepEqual(await firmwareOf(plane, 'gone'), before);
    await plane.ask('start', 'gone');
    assert.equal(await diskOf(plane, 'gone'), 'kept');
    assert.deepEqual(identityOf(plane, 'gone'), seen, 'MAC and device addresses, too');
  });

  for (const exists of [true, false]) {
    const how = exists ? 'that is there' : 'that is gone';
    await t.test(`rows 4 and 13: a content of old without uuid, for a VM ${how}`, async () => {
      const name = exists ? 'old-there' : 'old-gone';
      await plane.apply(aVm(name, HALTED));
      await plane.apply(aSnapshot(`${name}-1`, name));
      await succeeded(plane, `${name}-1`);
      const content = await contentOf(plane, `${name}-1`);
      const { virtualMachine } = content.spec.source;
      await plane.call('PATCH', content.url, {
        body: { spec: { source: { virtualMachine: oldMachine(virtualMachine), virtualMachineIdentity: null } } },
      });
      if (!exists) await plane.delete('VirtualMachine', name);
      await plane.apply(aRestore(`${name}-back`, name, `${name}-1`));
      await complete(plane, `${name}-back`);
      assert.equal((await firmwareOf(plane, name)).uuid, legacyUuid(name));
    });
  }

  await t.test('to another name: who is free keeps who it is, who is not becomes somebody else', async () => {
    await made(plane, 'origin');
    const before = await firmwareOf(plane, 'origin');
    await plane.apply(aSnapshot('origin-1', 'origin'));
    await succeeded(plane, 'origin-1');
    await plane.apply(aRestore('copying', 'copy', 'origin-1'));
    await complete(plane, 'copying');
    const copy = await firmwareOf(plane, 'copy');
    assert.notEqual(copy.uuid, before.uuid);
    assert.notEqual(copy.serial, before.serial);
    assert.match((await plane.events('copying')).join('\n'), /FirmwareUUIDRenewed/);
    assert.deepEqual(await firmwareOf(plane, 'origin'), before);

    await plane.delete('VirtualMachine', 'origin');
    await plane.delete('VirtualMachine', 'copy');
    await plane.apply(aRestore('moving', 'moved', 'origin-1'));
    await complete(plane, 'moving');
    const { uuid, serial } = await firmwareOf(plane, 'moved');
    assert.deepEqual([uuid, serial], [before.uuid, before.serial]);
  });

  await t.test('while a snapshot is taken, run state and disks are held', async () => {
    await made(plane, 'held');
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.apply(aSnapshot('held-1', 'held'));
    assert.equal((await plane.get('VirtualMachine', 'held')).status.snapshotInProgress, 'held-1');
    assert.match(await plane.ask('stop', 'held'), /^4\d\d .*until snapshot "held-1" completes/);
    for (const { host } of plane.nodes) {
      host.holdCopies = false;
      host.finishCopies();
    }
    await plane.advance(10_000);
    await succeeded(plane, 'held-1');
    assert.equal(await plane.ask('stop', 'held'), '202');
  });

  await t.test('a guest that ends while its disks are copied fails the snapshot, and starts again', async () => {
    await made(plane, 'ends');
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.apply(aSnapshot('ends-1', 'ends'));
    plane.guest('ends').crash('QEMU exited with code 1');
    await plane.advance(30_000);
    for (const { host } of plane.nodes) host.holdCopies = false;
    const { status } = await plane.get('VirtualMachineSnapshot', 'ends-1');
    assert.equal(status.phase, 'Failed', JSON.stringify(status));
    assert.ok(status.error.message !== '');
    assert.equal(plane.guests('ends').length, 1);
    assert.deepEqual(await plane.list('VolumeSnapshotContent').then((all) => all.filter(named('ends'))), []);
  });

  await t.test('readiness: a running target is waited for, or refused', async () => {
    await made(plane, 'busy');
    await plane.apply(aSnapshot('busy-1', 'busy'));
    await succeeded(plane, 'busy-1');
    await plane.apply(aRestore('at-once', 'busy', 'busy-1', { targetReadinessPolicy: 'FailImmediate' }));
    assert.equal(conditionOf(await plane.get('VirtualMachineRestore', 'at-once'), 'Failure')?.status, 'True');
    await plane.apply(aRestore('patient', 'busy', 'busy-1'));
    assert.equal((await plane.get('VirtualMachine', 'busy')).status.restoreInProgress, 'patient');
    await plane.advance(301_000);
    assert.equal(conditionOf(await plane.get('VirtualMachineRestore', 'patient'), 'Failure')?.status, 'True');
    assert.equal(plane.guests('busy').length, 1, 'nobody stopped it');
    await plane.apply(aRestore('endless', 'busy', 'busy-1', { targetReadinessPolicy: 'WaitEventually' }));
    await plane.advance(301_000);
    assert.equal(await plane.ask('stop', 'busy'), '202');
    await complete(plane, 'endless');
  });

  await t.test('deletion: the data goes with the snapshot, or stays with its content', async () => {
    await made(plane, 'del');
    await plane.apply(aSnapshot('goes', 'del'));
    await plane.apply(aSnapshot('stays', 'del', { deletionPolicy: 'Retain' }));
    await succeeded(plane, 'goes');
    const kept = (await succeeded(plane, 'stays')).status.virtualMachineSnapshotContentName;
    const snapshots = async () => (await plane.list('VolumeSnapshot')).filter(named('del')).length;
    assert.equal(await snapshots(), 2);
    await plane.delete('VirtualMachineSnapshot', 'goes');
    await plane.delete('VirtualMachineSnapshot', 'stays');
    assert.equal(await plane.find('VirtualMachineSnapshot', 'goes'), undefined);
    assert.equal(await plane.find('VirtualMachineSnapshot', 'stays'), undefined);
    assert.ok((await plane.find('VirtualMachineSnapshotContent', kept)) !== undefined);
    assert.equal(await snapshots(), 1);
    await plane.delete('VirtualMachineSnapshotContent', kept);
    assert.equal(await snapshots(), 0);
  });

  await t.test(
    'a restore that is there before its snapshot waits for it, and does not keep the VM from it',
    async () => {
      await made(plane, 'early', HALTED);
      const policy = { targetReadinessPolicy: 'StopTarget' };
      await plane.apply(aRestore('a-restore', 'early', 'b-snapshot', policy));
      assert.equal((await plane.get('VirtualMachine', 'early')).status.restoreInProgress, undefined);
      assert.equal(await plane.ask('start', 'early'), '202');
      await plane.apply(aSnapshot('b-snapshot', 'early'));
      await succeeded(plane, 'b-snapshot');
      await complete(plane, 'a-restore');
    },
  );

  await t.test('a snapshot that is to be kept can be deleted while it is restored', async () => {
    await made(plane, 'keep');
    await plane.apply(aSnapshot('keep-1', 'keep', { deletionPolicy: 'Retain' }));
    await succeeded(plane, 'keep-1');
    await plane.apply(aRestore('keep-back', 'keep', 'keep-1', { volumeRestorePolicy: 'InPlace' }));
    await plane.delete('VirtualMachineSnapshot', 'keep-1');
    assert.equal(await plane.ask('stop', 'keep'), '202');
    await complete(plane, 'keep-back');
    assert.equal(await plane.find('VirtualMachineSnapshot', 'keep-1'), undefined);
  });

  for (const runs of [true, false]) {
    await t.test(`the persistent state of a VM that ${runs ? 'runs' : 'is stopped'} comes back, too`, async () => {
      const vm = runs ? 'keeper' : 'sleeper';
      await plane.apply(aClaim(`${vm}-data`));
      await plane.apply(aKeeper(vm, `${vm}-data`));
      const first = await stateOf(plane, vm);
      first.node.write(first.volume, 'sealed');
      await writeDisk(plane, vm, 'opens with it');
      if (!runs) assert.equal(await plane.ask('stop', vm), '202');
      await plane.apply(aSnapshot(`${vm}-1`, vm));
      const { status } = await succeeded(plane, `${vm}-1`);
      assert.deepEqual(status.snapshotVolumes.includedVolumes, ['root', `persistent-state-for-${vm}`]);
      const { root, [`persistent-state-for-${vm}`]: state } = await heldBy(plane, `${vm}-1`);
      assert.deepEqual([root, state], ['opens with it', 'sealed']);

      first.node.write(first.volume, 'cleared');
      await plane.apply(aRestore(`${vm}-back`, vm, `${vm}-1`, { targetReadinessPolicy: 'StopTarget' }));
      await complete(plane, `${vm}-back`);
      assert.equal(await plane.find('PersistentVolumeClaim', first.claim), undefined, 'the old state is gone');
      await plane.ask('start', vm);
      const second = await stateOf(plane, vm);
      assert.equal(second.node.read(second.volume), 'sealed');
      assert.equal(plane.guest(vm).definition.state?.directory, `/simulated/${second.volume}/state`);

      await plane.apply(aRestore(`${vm}-copying`, `${vm}-copy`, `${vm}-1`));
      await complete(plane, `${vm}-copying`);
      await plane.ask('start', `${vm}-copy`);
      const copy = await stateOf(plane, `${vm}-copy`);
      assert.equal(copy.node.read(copy.volume), 'sealed');
      assert.notEqual(copy.claim, second.claim);
    });
  }

  await t.test('a snapshot of a VM that never comes fails after its deadline', async () => {
    await plane.apply(aSnapshot('nobody', 'no-such-vm', { failureDeadline: '1m' }));
    assert.equal((await plane.get('VirtualMachineSnapshot', 'nobody')).status.phase, 'InProgress');
    await plane.advance(61_000);
    assert.equal((await plane.get('VirtualMachineSnapshot', 'nobody')).status.phase, 'Failed');
  });
});

const named = (vm: string) => (object: Loose) =>
  JSON.stringify(object.spec.source).includes(`${vm}-data`) || JSON.stringify(object.metadata).includes(`"${vm}`);

function oldMachine(vm: Loose): Loose {
  const old = withoutFirmwareUuid(vm);
  // A merge patch leaves what it does not name.
  old.spec.template.spec.domain.firmware = { ...old.spec.template.spec.domain.firmware, uuid: null, serial: null };
  return old;
}
