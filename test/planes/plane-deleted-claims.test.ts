/** Claims that are deleted while a VM uses them: the VM reports it, loses nothing unannounced, and can be stopped. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { aMigration } from '#test/support/migrating-vm.ts';
import { aRestore, aSnapshot } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const CLAIM_URL = '/api/v1/namespaces/default/persistentvolumeclaims/home';
const RUNNING = 'Running, VMI Running, running, 1';
const STOPPED = 'Stopped, no VMI, no guest, 1';

/** Starts a VM and deletes the claim of its disk. Returns the warnings of the deletion. */
async function startWithDeletedClaim(t: TestContext): Promise<{ plane: VmPlane; warnings: readonly string[] }> {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('home'));
  await plane.apply(aVmOnClaim('db', 'home', { runStrategy: 'Always' }));
  const { warnings } = await plane.call('DELETE', CLAIM_URL);
  await plane.settle();
  return { plane, warnings };
}

async function messageOf(plane: VmPlane, kind: string, name: string, type: string): Promise<string | undefined> {
  const { status } = await plane.get(kind, name);
  return status.conditions?.find((condition: Loose) => condition.type === type)?.message;
}

test('a VM whose claim is being deleted says so, and loses the disk only when it stops', async (t) => {
  const { plane, warnings } = await startWithDeletedClaim(t);

  await t.test('the deletion warns, and the VM has a condition and an Event that name the claim', async () => {
    const [warning = '', ...others] = warnings;
    assert.match(warning, /^PersistentVolumeClaim "home" is a disk of VirtualMachine "db": /);
    assert.deepEqual(others, []);
    const deleted = /^PersistentVolumeClaim "home" of the VM is being deleted: its data is deleted when the VM stops/;
    assert.match((await messageOf(plane, 'VirtualMachine', 'db', 'ClaimBeingDeleted')) ?? '', deleted);
    const events = (await plane.eventsOf('db')).filter((line) => line.includes('ClaimBeingDeleted'));
    assert.equal(events.length, 1);
  });

  await t.test('a migration is refused at once', async () => {
    const { status, body } = await plane.post(aMigration('away', 'db'));
    assert.equal(status, 400);
    assert.match(body.message, /volume root: the claim home is being deleted/);
  });

  await t.test('a snapshot fails at once and does not hold the VM', async () => {
    await plane.apply(aSnapshot('s', 'db'));
    const { status } = await plane.get('VirtualMachineSnapshot', 's');
    assert.equal(status.phase, 'Failed');
    assert.match(status.error.message, /^PersistentVolumeClaim "home" is being deleted/);
    assert.equal((await plane.get('VirtualMachine', 'db')).status.snapshotInProgress, undefined);
  });

  await t.test('a restart, which would lose the disk, is refused', async () => {
    assert.match(await plane.runVerb('restart', 'db'), /^409 .*Cannot restart the VM: PersistentVolumeClaim "home"/);
    assert.equal(await plane.summaryOf('db'), RUNNING);
  });

  await t.test('a stop works, and the data of a retained volume stays', async () => {
    const [{ metadata }] = await plane.list('PersistentVolume');
    const body = { spec: { persistentVolumeReclaimPolicy: 'Retain' } };
    await plane.server.api.ok('PATCH', `/api/v1/persistentvolumes/${metadata.name}`, { body });
    assert.equal(await plane.runVerb('stop', 'db'), '202');
    assert.equal(await plane.summaryOf('db'), STOPPED);
    assert.equal(await plane.find('PersistentVolumeClaim', 'home'), undefined);
    assert.equal((await plane.get('PersistentVolume', metadata.name)).status.phase, 'Released');
    assert.equal(plane.nodes.flatMap(({ volumeNames }) => [...volumeNames]).length, 1);
    assert.equal(await messageOf(plane, 'VirtualMachine', 'db', 'ClaimBeingDeleted'), undefined);
  });
});

test('a claim that is deleted while in use goes with its VM, also if another claim was deleted meanwhile', async (t) => {
  const { plane } = await startWithDeletedClaim(t);
  await plane.apply(aClaim('other'));
  await plane.delete('PersistentVolumeClaim', 'other');
  assert.equal(await plane.find('PersistentVolumeClaim', 'other'), undefined);
  assert.notEqual(await plane.find('PersistentVolumeClaim', 'home'), undefined, 'the guest has its disk');
  assert.equal(await plane.runVerb('stop', 'db'), '202');
  await plane.delete('VirtualMachine', 'db');
  assert.equal(await plane.find('PersistentVolumeClaim', 'home'), undefined);
});

test('a VM that lost its claim can be stopped while a snapshot waits for it', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aVmOnClaim('db', 'nosuch', { runStrategy: 'Always' }));
  assert.equal(await plane.summaryOf('db'), 'ErrorPvcNotFound, VMI Pending, no guest, 0');
  await plane.apply(aSnapshot('s', 'db', { failureDeadline: '0s' }));
  assert.equal((await plane.get('VirtualMachine', 'db')).status.snapshotInProgress, 's');
  assert.equal(await plane.runVerb('stop', 'db'), '202');
  assert.equal(await plane.summaryOf('db'), 'Stopped, no VMI, no guest, 0');
});

test('a VM whose persistent state is being deleted says so', async (t) => {
  const plane = await startVmPlane(t);
  const template = { domain: { memory: { guest: '128Mi' }, devices: { tpm: { persistent: true } } } };
  await plane.apply(aVm('safe', { runStrategy: 'Always' }, template));
  const [state] = await plane.names('PersistentVolumeClaim');
  await plane.delete('PersistentVolumeClaim', state ?? '');
  const message = (await messageOf(plane, 'VirtualMachine', 'safe', 'ClaimBeingDeleted')) ?? '';
  assert.match(message, /is being deleted: its data is deleted when the VM stops, .* cannot be restarted;/);
  assert.match(await plane.runVerb('restart', 'safe'), /^409 .*Cannot restart the VM/);
  assert.equal(await plane.runVerb('stop', 'safe'), '202');
  assert.equal(await plane.summaryOf('safe'), STOPPED);
});

test('a restore reports copied TPM keys and owned disks, and the deletion of the VM warns about the disks', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('home'));
  const domain = {
    memory: { guest: '128Mi' },
    devices: { tpm: { persistent: true }, disks: [{ name: 'root', disk: { bus: 'virtio' } }] },
  };
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'home' } }];
  await plane.apply(aVm('db', { runStrategy: 'Always' }, { domain, volumes }));
  await plane.apply(aSnapshot('s', 'db'));
  await plane.advance(5000);
  await plane.apply(aRestore('r1', 'copy', 's'));
  await plane.apply(aRestore('r2', 'fresh', 's', { persistentStatePolicy: 'Omit', volumeOwnershipPolicy: 'None' }));
  await plane.advance(15_000);
  const reasonsOf = async (vm: string) =>
    (await plane.eventsOf(vm)).filter((line) => /PersistentStateCopied|RestoredClaimsOwned/.test(line));
  assert.equal((await reasonsOf('copy')).length, 2);
  assert.deepEqual(await reasonsOf('fresh'), []);
  const states = (await plane.names('PersistentVolumeClaim')).filter((name) =>
    name.startsWith('persistent-state-for-'),
  );
  assert.deepEqual(
    states.map((name) => name.split('-')[3]),
    ['copy', 'db'],
  );

  const url = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
  const warned = await plane.call('DELETE', `${url}/copy`);
  assert.match(warned.warnings.join(), /^PersistentVolumeClaim "restore-.*-root" came to VirtualMachine "copy" with a/);
  assert.deepEqual((await plane.call('DELETE', `${url}/fresh`)).warnings, []);
  await plane.settle();
});
