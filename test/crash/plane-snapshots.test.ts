/** Snapshots and restores on the whole plane: the spec, the identity and the disks of a VM are restored. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { VOLUME_NODE_ANNOTATION } from '#api/names.ts';
import { STATE_LABEL } from '#api/storage/persistent-state.ts';
import { withoutFirmwareUuid } from '#test/support/old-objects.ts';
import {
  aRestore,
  aSnapshot,
  contentOf,
  diskText,
  snapshotTexts,
  writeDisk,
  rewriteContent,
} from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const HALTED = { runStrategy: 'Halted' };

const firmwareOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.get('VirtualMachine', vm)).spec.template.spec.domain.firmware;
const conditionOf = ({ status }: Loose, type: string): Loose =>
  status?.conditions?.find((one: Loose) => one.type === type);
const machineOf = (plane: VmPlane, vm: string): Loose => plane.startsOf(vm).at(-1)!.machine;
/** The machine as the guest sees it, without the paths of its disks on the node. */
const identityOf = (plane: VmPlane, vm: string): Loose => {
  const { firmware, devices } = machineOf(plane, vm);
  return { firmware, devices: devices.map((device: Loose) => ({ ...device, source: undefined })) };
};

const aVmWithState = (name: string, claim: string): Loose => {
  const vm = aVmOnClaim(name, claim, ALWAYS);
  vm.spec.template.spec.domain.devices.tpm = { persistent: true };
  return vm;
};

/** Returns the only claim that is marked as the state of the VM, with its volume and node. */
async function stateOf(plane: VmPlane, vm: string) {
  const claims = await plane.list('PersistentVolumeClaim');
  const [claim, ...more] = claims.filter(({ metadata }) => metadata.labels?.[STATE_LABEL] === vm);
  assert.deepEqual(more, []);
  const volume = await plane.get('PersistentVolume', claim!.spec.volumeName);
  const home = volume.metadata.annotations[VOLUME_NODE_ANNOTATION] ?? plane.nodes[0]!.name;
  return { claim: claim!.metadata.name, volume: volume.metadata.name, node: plane.node(home) };
}

async function makeVm(plane: VmPlane, name: string, spec: Loose = ALWAYS): Promise<void> {
  await plane.apply(aClaim(`${name}-data`));
  await plane.apply(aVmOnClaim(name, `${name}-data`, spec));
}

async function assertSucceeded(plane: VmPlane, name: string): Promise<Loose> {
  const snapshot = await plane.get('VirtualMachineSnapshot', name);
  assert.equal(snapshot.status?.phase, 'Succeeded', JSON.stringify(snapshot.status));
  assert.equal(snapshot.status.readyToUse, true);
  return snapshot;
}

async function assertComplete(plane: VmPlane, name: string): Promise<Loose> {
  const restore = await plane.get('VirtualMachineRestore', name);
  assert.equal(restore.status?.complete, true, JSON.stringify(restore.status));
  return restore;
}

test('snapshots and restores', async (t) => {
  const plane = await startVmPlane(t);

  await t.test(
    'a snapshot of a running VM does not interrupt the guest, and a restore in place restores everything',
    async () => {
      await makeVm(plane, 'db');
      await writeDisk(plane, 'db', 'precious');
      const before = await firmwareOf(plane, 'db');
      const seen = identityOf(plane, 'db');
      await plane.apply(aSnapshot('before', 'db'));
      const snapshot = await assertSucceeded(plane, 'before');
      assert.deepEqual(snapshot.status.snapshotVolumes.includedVolumes, ['root']);
      assert.ok(snapshot.status.indications.includes('Online'));
      assert.equal((await plane.get('VirtualMachine', 'db')).status.snapshotInProgress, undefined);
      assert.equal(plane.startsOf('db').length, 1, 'the guest was not restarted');

      await writeDisk(plane, 'db', 'wiped');
      await plane.apply(aRestore('back', 'db', 'before', { targetReadinessPolicy: 'StopTarget' }));
      await assertComplete(plane, 'back');
      assert.equal(await diskText(plane, 'db'), 'precious');
      assert.deepEqual(await firmwareOf(plane, 'db'), before);
      await plane.runVerb('start', 'db');
      assert.deepEqual(identityOf(plane, 'db'), seen, 'the selfsame machine');
    },
  );

  await t.test('row 8: a restore of a deleted VM creates the same machine again', async () => {
    await makeVm(plane, 'gone');
    await writeDisk(plane, 'gone', 'kept');
    const [before, seen] = [await firmwareOf(plane, 'gone'), identityOf(plane, 'gone')];
    await plane.apply(aSnapshot('gone-1', 'gone'));
    await assertSucceeded(plane, 'gone-1');
    await plane.delete('VirtualMachine', 'gone');
    await plane.delete('PersistentVolumeClaim', 'gone-data');
    assert.equal(await plane.find('VirtualMachine', 'gone'), undefined);

    await plane.apply(aRestore('gone-back', 'gone', 'gone-1'));
    await assertComplete(plane, 'gone-back');
    assert.equal((await plane.get('VirtualMachine', 'gone')).spec.runStrategy, 'Halted');
    assert.deepEqual(await firmwareOf(plane, 'gone'), before);
    await plane.runVerb('start', 'gone');
    assert.equal(await diskText(plane, 'gone'), 'kept');
    assert.deepEqual(identityOf(plane, 'gone'), seen, 'MAC and device addresses, too');
  });

  for (const exists of [true, false]) {
    const how = exists ? 'that exists' : 'that was deleted';
    await t.test(`rows 4 and 13: a content of an older version without uuid, for a VM ${how}`, async () => {
      const name = exists ? 'old-there' : 'old-gone';
      await plane.apply(aVm(name, HALTED));
      await plane.apply(aSnapshot(`${name}-1`, name));
      await assertSucceeded(plane, `${name}-1`);
      const content = await contentOf(plane, `${name}-1`);
      const { virtualMachine } = content.spec.source;
      const source = { virtualMachine: withoutIdentity(virtualMachine), virtualMachineIdentity: null };
      await rewriteContent(plane, content.url, { source });
      if (!exists) await plane.delete('VirtualMachine', name);
      await plane.apply(aRestore(`${name}-back`, name, `${name}-1`));
      await assertComplete(plane, `${name}-back`);
      assert.equal((await firmwareOf(plane, name)).uuid, legacyUuid(name));
    });
  }

  await t.test(
    'a restore to another name keeps the identity if it is free, and gets a new one if it is not',
    async () => {
      await makeVm(plane, 'origin');
      const before = await firmwareOf(plane, 'origin');
      await plane.apply(aSnapshot('origin-1', 'origin'));
      await assertSucceeded(plane, 'origin-1');
      await plane.apply(aRestore('copying', 'copy', 'origin-1'));
      await assertComplete(plane, 'copying');
      const copy = await firmwareOf(plane, 'copy');
      assert.notEqual(copy.uuid, before.uuid);
      assert.notEqual(copy.serial, before.serial);
      assert.match((await plane.eventsOf('copying')).join('\n'), /FirmwareUUIDRenewed/);
      assert.deepEqual(await firmwareOf(plane, 'origin'), before);

      await plane.delete('VirtualMachine', 'origin');
      await plane.delete('VirtualMachine', 'copy');
      await plane.apply(aRestore('moving', 'moved', 'origin-1'));
      await assertComplete(plane, 'moving');
      const { uuid, serial } = await firmwareOf(plane, 'moved');
      assert.deepEqual([uuid, serial], [before.uuid, before.serial]);
    },
  );

  await t.test('a VM cannot be stopped while a snapshot is taken', async () => {
    await makeVm(plane, 'held');
    for (const { host } of plane.nodes) host.holdCopies = true;
    await plane.apply(aSnapshot('held-1', 'held'));
    assert.equal((await plane.get('VirtualMachine', 'held')).status.snapshotInProgress, 'held-1');
    assert.match(await plane.runVerb('stop', 'held'), /^4\d\d .*until snapshot "held-1" completes/);
    for (const { host } of plane.nodes) {
      host.holdCopies = false;
      host.finishCopies();
    }
    await plane.advance(10_000);
    await assertSucceeded(plane, 'held-1');
    assert.equal(await plane.runVerb('stop', 'held'), '202');
  });

  await t.test(
    'a guest that ends while its disks are copied fails the snapshot, and the guest starts again',
    async () => {
      await makeVm(plane, 'ends');
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
    },
  );

  await t.test('a restore waits for a running target, or fails, as its policy says', async () => {
    await makeVm(plane, 'busy');
    await plane.apply(aSnapshot('busy-1', 'busy'));
    await assertSucceeded(plane, 'busy-1');
    await plane.apply(aRestore('at-once', 'busy', 'busy-1', { targetReadinessPolicy: 'FailImmediate' }));
    assert.equal(conditionOf(await plane.get('VirtualMachineRestore', 'at-once'), 'Failure')?.status, 'True');
    await plane.apply(aRestore('patient', 'busy', 'busy-1'));
    assert.equal((await plane.get('VirtualMachine', 'busy')).status.restoreInProgress, 'patient');
    await plane.advance(301_000);
    assert.equal(conditionOf(await plane.get('VirtualMachineRestore', 'patient'), 'Failure')?.status, 'True');
    assert.equal(plane.guests('busy').length, 1, 'the guest was not stopped');
    await plane.apply(aRestore('endless', 'busy', 'busy-1', { targetReadinessPolicy: 'WaitEventually' }));
    await plane.advance(301_000);
    assert.equal(await plane.runVerb('stop', 'busy'), '202');
    await assertComplete(plane, 'endless');
  });

  await t.test('the data is deleted with the snapshot, or kept with its content, as its policy says', async () => {
    await makeVm(plane, 'del');
    await plane.apply(aSnapshot('goes', 'del'));
    await plane.apply(aSnapshot('stays', 'del', { deletionPolicy: 'Retain' }));
    await assertSucceeded(plane, 'goes');
    const kept = (await assertSucceeded(plane, 'stays')).status.virtualMachineSnapshotContentName;
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

  await t.test('a restore that is created before its snapshot waits for it without holding the VM', async () => {
    await makeVm(plane, 'early', HALTED);
    const policy = { targetReadinessPolicy: 'StopTarget' };
    await plane.apply(aRestore('a-restore', 'early', 'b-snapshot', policy));
    assert.equal((await plane.get('VirtualMachine', 'early')).status.restoreInProgress, undefined);
    assert.equal(await plane.runVerb('start', 'early'), '202');
    await plane.apply(aSnapshot('b-snapshot', 'early'));
    await assertSucceeded(plane, 'b-snapshot');
    await assertComplete(plane, 'a-restore');
  });

  await t.test('a snapshot with policy Retain can be deleted while it is restored', async () => {
    await makeVm(plane, 'keep');
    await plane.apply(aSnapshot('keep-1', 'keep', { deletionPolicy: 'Retain' }));
    await assertSucceeded(plane, 'keep-1');
    await plane.apply(aRestore('keep-back', 'keep', 'keep-1', { volumeRestorePolicy: 'InPlace' }));
    await plane.delete('VirtualMachineSnapshot', 'keep-1');
    assert.equal(await plane.runVerb('stop', 'keep'), '202');
    await assertComplete(plane, 'keep-back');
    assert.equal(await plane.find('VirtualMachineSnapshot', 'keep-1'), undefined);
  });

  for (const runs of [true, false]) {
    await t.test(`the persistent state of a VM that ${runs ? 'runs' : 'is stopped'} is restored too`, async () => {
      const vm = runs ? 'keeper' : 'sleeper';
      await plane.apply(aClaim(`${vm}-data`));
      await plane.apply(aVmWithState(vm, `${vm}-data`));
      const first = await stateOf(plane, vm);
      first.node.write(first.volume, 'sealed');
      await writeDisk(plane, vm, 'opens with it');
      if (!runs) assert.equal(await plane.runVerb('stop', vm), '202');
      await plane.apply(aSnapshot(`${vm}-1`, vm));
      const { status } = await assertSucceeded(plane, `${vm}-1`);
      assert.deepEqual(status.snapshotVolumes.includedVolumes, ['root', `persistent-state-for-${vm}`]);
      const { root, [`persistent-state-for-${vm}`]: state } = await snapshotTexts(plane, `${vm}-1`);
      assert.deepEqual([root, state], ['opens with it', 'sealed']);

      first.node.write(first.volume, 'cleared');
      await plane.apply(aRestore(`${vm}-back`, vm, `${vm}-1`, { targetReadinessPolicy: 'StopTarget' }));
      await assertComplete(plane, `${vm}-back`);
      assert.equal(await plane.find('PersistentVolumeClaim', first.claim), undefined, 'the old state is deleted');
      await plane.runVerb('start', vm);
      const second = await stateOf(plane, vm);
      assert.equal(second.node.read(second.volume), 'sealed');
      assert.equal(plane.guest(vm).definition.state?.directory, `/simulated/${second.volume}/state`);

      await plane.apply(aRestore(`${vm}-copying`, `${vm}-copy`, `${vm}-1`));
      await assertComplete(plane, `${vm}-copying`);
      await plane.runVerb('start', `${vm}-copy`);
      const copy = await stateOf(plane, `${vm}-copy`);
      assert.equal(copy.node.read(copy.volume), 'sealed');
      assert.notEqual(copy.claim, second.claim);
    });
  }

  await t.test('a snapshot of a VM that does not exist fails after its deadline', async () => {
    await plane.apply(aSnapshot('nobody', 'no-such-vm', { failureDeadline: '1m' }));
    assert.equal((await plane.get('VirtualMachineSnapshot', 'nobody')).status.phase, 'InProgress');
    await plane.advance(61_000);
    assert.equal((await plane.get('VirtualMachineSnapshot', 'nobody')).status.phase, 'Failed');
  });
});

const named = (vm: string) => (object: Loose) =>
  JSON.stringify(object.spec.source).includes(`${vm}-data`) || JSON.stringify(object.metadata).includes(`"${vm}`);

function withoutIdentity(vm: Loose): Loose {
  const old = withoutFirmwareUuid(vm);
  // A merge patch keeps fields that it does not name.
  old.spec.template.spec.domain.firmware = { ...old.spec.template.spec.domain.firmware, uuid: null, serial: null };
  return old;
}
