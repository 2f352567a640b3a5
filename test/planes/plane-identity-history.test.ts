/** The history of a VM's identity on the whole plane: each kind of change, its values, its cause and its author. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { IDENTITY_EDITS_ANNOTATION } from '#api/identity/identity-edits.ts';
import { legacyUuid } from '#api/identity/legacy-uuid.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { historyOf } from '#test/support/identity-history.ts';
import { aMigration, startMigratingVm, VM } from '#test/support/migrating-vm.ts';
import { storePastAdmission, withoutFirmwareUuid } from '#test/support/old-objects.ts';
import { aRestore, aSnapshot, contentOf, rewriteContent } from '#test/support/snapshots.ts';
import type { Loose } from '#test/support/test-api.ts';
import { TransitionScene } from '#test/support/transition-scene.ts';
import { aClaim, aVm, aVmOnClaim, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const ALICE = { name: 'alice', groups: ['system:masters', 'system:authenticated'] };
const UUID = '11111111-2222-4333-8444-555555555555';
const ALWAYS = { runStrategy: 'Always' };

const lastOf = async (plane: VmPlane, vm: string): Promise<Loose> =>
  (await plane.get('VirtualMachineIdentity', vm)).status.history.at(-1);

async function editAsAlice(plane: VmPlane, vm: string, domain: Loose, spec: Loose = {}): Promise<void> {
  const body = { spec: { template: { spec: { domain, ...spec } } } };
  const { status, text } = await plane.call('PATCH', `${VMS}/${vm}`, { body, user: ALICE });
  assert.equal(status, 200, text);
  await plane.settle();
}

/** Returns the entries that the work added to the history. */
async function entriesDuring(plane: VmPlane, vm: string, work: () => Promise<unknown>): Promise<string[]> {
  const before = await historyOf(plane, vm);
  await work();
  const after = await historyOf(plane, vm);
  assert.deepEqual(after.slice(0, before.length), before, 'earlier entries stay');
  return after.slice(before.length);
}

test('every change of the identity is in its history', async (t) => {
  const plane = await startVmPlane(t);
  await plane.apply(aClaim('web-root'));
  await plane.apply(aClaim('extra'));
  const START = 'the start of instance UID';

  await t.test('a first start', async () => {
    await plane.apply(aVmOnClaim('web', 'web-root', ALWAYS));
    const history = await historyOf(plane, 'web');
    const first = ['firmware.uuid', 'firmware.serial', 'interfaces.default.macAddress'];
    assert.deepEqual(
      history.slice(0, 3),
      first.map((field) => `${field}: first start, admin`),
    );
    assert.ok(
      history.slice(3).every((line) => line.endsWith(`: ${START}`)),
      history.join('\n'),
    );
    assert.ok(history.includes(`devices.disk-root: ${START}`));
  });

  await t.test('uuid, serial and MAC address of the template, and a restart', async () => {
    const interfaces = [{ name: 'default', masquerade: {}, macAddress: '02:00:00:AB:CD:EF' }];
    const changes = await entriesDuring(plane, 'web', async () => {
      await editAsAlice(plane, 'web', { firmware: { uuid: UUID, serial: 'S-2' }, devices: { interfaces } });
      assert.equal(
        (await plane.get('VirtualMachineIdentity', 'web')).status.history.length,
        2,
        'not before the restart',
      );
      await plane.runVerb('restart', 'web');
    });
    const fields = ['firmware.uuid', 'firmware.serial', 'interfaces.default.macAddress'];
    assert.deepEqual(
      changes,
      fields.map((field) => `${field}: edit of the VM, alice`),
    );
    const { changes: values } = await lastOf(plane, 'web');
    assert.deepEqual([values[0].to, values[1].to, values[2].to], [UUID, 'S-2', '02:00:00:ab:cd:ef']);
    assert.ok(values.every(({ from }: Loose) => from !== undefined));
  });

  await t.test('applying the same manifest again changes neither the VM nor its history', async () => {
    const before = await plane.get('VirtualMachine', 'web');
    for (const dryRun of ['?dryRun=All', '']) {
      const url = `${VMS}/web${dryRun}`;
      const { body } = await plane.call('PATCH', url, { body: { spec: before.spec }, user: ALICE });
      assert.deepEqual(body.metadata.annotations, before.metadata.annotations);
    }
    assert.deepEqual(await entriesDuring(plane, 'web', () => plane.runVerb('restart', 'web')), []);
  });

  await t.test('the author of a change cannot be forged', async () => {
    const forged = JSON.stringify({ 'machine.type': { at: '2026-01-01T00:00:00Z', by: 'bob' } });
    const before = await plane.get('VirtualMachine', 'web');
    const body = { metadata: { annotations: { [IDENTITY_EDITS_ANNOTATION]: forged } } };
    await plane.call('PATCH', `${VMS}/web`, { body, user: ALICE });
    const after = await plane.get('VirtualMachine', 'web');
    assert.deepEqual(after.metadata.annotations, before.metadata.annotations);
  });

  await t.test('a disk that a verb plugs and unplugs, permanently and for one run', async () => {
    const volumeSource = { persistentVolumeClaim: { claimName: 'extra' } };
    const disk = { name: 'extra', disk: { bus: 'scsi' } };
    const callVerb = async (resource: string, verb: string, body: Loose) => {
      const url = `/apis/subresources.kubevirt.io/v1/namespaces/default/${resource}/web/${verb}`;
      const { status, text } = await plane.call('PUT', url, { body, user: ALICE });
      assert.equal(status, 202, text);
      await plane.settle();
    };
    for (const [resource, cause] of [
      ['virtualmachineinstances', 'hotplug for this run of the VM'],
      ['virtualmachines', 'edit of the VM, alice'],
    ] as const) {
      const came = await entriesDuring(plane, 'web', () =>
        callVerb(resource, 'addvolume', { name: 'extra', disk, volumeSource }),
      );
      assert.ok(came.includes(`devices.disk-extra: ${cause}`), came.join('\n'));
      const went = await entriesDuring(plane, 'web', () => callVerb(resource, 'removevolume', { name: 'extra' }));
      assert.ok(went.includes(`devices.disk-extra: ${cause}`), went.join('\n'));
    }
  });

  await t.test('a boot order', async () => {
    const disks = [{ name: 'root', disk: { bus: 'virtio' }, bootOrder: 3 }];
    const changes = await entriesDuring(plane, 'web', async () => {
      await editAsAlice(plane, 'web', { devices: { disks } });
      await plane.runVerb('restart', 'web');
    });
    assert.deepEqual(changes, ['devices.disk-root.bootOrder: edit of the VM, alice']);
  });

  await t.test('a machine type by an edit, and by a transition', async () => {
    const edited = await entriesDuring(plane, 'web', async () => {
      await editAsAlice(plane, 'web', { machine: { type: 'pc-q35-rhel8.2.0' } });
      await plane.runVerb('restart', 'web');
    });
    assert.deepEqual(edited, ['machine.type: edit of the VM, alice']);
    const scene = await TransitionScene.create(plane, { glob: '*rhel-8.*', name: 'web', restartNow: true });
    const moved = await entriesDuring(plane, 'web', async () => assert.equal(await scene.run(), 'done'));
    assert.deepEqual(moved, [`machine.type: transition by Job ${scene.job.name}`]);
  });

  await t.test('a restore, with its changes', async () => {
    await plane.apply(aSnapshot('then', 'web'));
    const restoredUuid = '22222222-2222-4333-8444-555555555555';
    await editAsAlice(plane, 'web', { firmware: { uuid: restoredUuid } });
    await plane.runVerb('restart', 'web');
    await plane.runVerb('stop', 'web');
    const changes = await entriesDuring(plane, 'web', () => plane.apply(aRestore('back', 'web', 'then')));
    assert.deepEqual(changes, ['firmware.uuid: VirtualMachineRestore back (UID)']);
    const [{ from, to }] = (await lastOf(plane, 'web')).changes;
    assert.deepEqual([from, to], [restoredUuid, UUID]);
  });

  await t.test('a uuid by the legacy rule, and a restore that brings it back', async () => {
    await storePastAdmission(plane, withoutFirmwareUuid(aVm('old', { runStrategy: 'Halted' })));
    await plane.settle();
    await plane.apply(aSnapshot('old-then', 'old'));
    // As an older version stored it: of a VM without a uuid and without a record.
    const { url } = await contentOf(plane, 'old-then');
    const domain = { firmware: { uuid: null, serial: null } };
    const source = { virtualMachine: { spec: { template: { spec: { domain } } } }, virtualMachineIdentity: null };
    await rewriteContent(plane, url, { source });
    await plane.runVerb('start', 'old');
    const [uuid] = await historyOf(plane, 'old');
    assert.equal(uuid, 'firmware.uuid: legacy rule: the uuid is derived from the name of the VM');
    const edited = '44444444-2222-4333-8444-555555555555';
    await editAsAlice(plane, 'old', { firmware: { uuid: edited } });
    await plane.runVerb('restart', 'old');
    await plane.runVerb('stop', 'old');
    const changes = await entriesDuring(plane, 'old', async () => {
      await plane.apply(aRestore('old-back', 'old', 'old-then'));
      await plane.runVerb('start', 'old');
    });
    assert.deepEqual(changes, ['firmware.uuid: VirtualMachineRestore old-back']);
    const [{ from, to }] = (await lastOf(plane, 'old')).changes;
    assert.deepEqual([from, to], [edited, legacyUuid('old')]);
  });

  await t.test('an import', async () => {
    const row = { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default', managed: true };
    const vm = aVm('moved', ALWAYS);
    const imported = { from: 'OVF of oVirt 4.1', machine: 'pc-q35-6.2', devices: [row] };
    vm.metadata.annotations = { [IMPORTED_DEVICES_ANNOTATION]: JSON.stringify(imported) };
    await plane.apply(vm);
    const history = await historyOf(plane, 'moved');
    assert.ok(history.includes('devices.nic-default: the import of the VM, admin'), history.join('\n'));
    assert.ok(history.includes('firmware.uuid: the import of the VM, admin'));
  });

  await t.test('a server that crashes after any write loses no entry', async () => {
    for (const writes of [1, 3, 4, 6]) {
      const uuid = `33333333-2222-4333-8444-${String(writes).padStart(12, '0')}`;
      await editAsAlice(plane, 'web', { firmware: { uuid } });
      const cut = plane.cutAfter(writes);
      const working = plane.runVerb(writes % 2 === 0 ? 'start' : 'restart', 'web').catch(() => 'cut');
      await Promise.race([working, cut]);
      await plane.restartServer();
      await plane.runVerb('start', 'web');
      await plane.runVerb('restart', 'web');
      await historyOf(plane, 'web');
      const { changes, by } = await lastOf(plane, 'web');
      assert.deepEqual([changes.at(0).to, by], [uuid, 'alice']);
    }
  });
});

test('a migration that hands over the state to another claim is in the history', async (t) => {
  const plane = await startVmPlane(t);
  await startMigratingVm(plane);
  const changes = await entriesDuring(plane, VM, () => plane.apply(aMigration('there')));
  assert.deepEqual(changes, ['stateClaim: migration there']);
  const { changes: values } = await lastOf(plane, VM);
  const { migrationState } = (await plane.get('VirtualMachineInstance', VM)).status;
  assert.deepEqual(values, [
    {
      field: 'stateClaim',
      from: migrationState.sourcePersistentStatePVCName,
      to: migrationState.targetPersistentStatePVCName,
    },
  ]);
});
