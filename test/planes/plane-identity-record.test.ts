/**
 * Identity records on the whole plane: each is deleted with its VM and not before, however the VM is deleted. A lost
 * record is rebuilt, or the VM does not start until a user decides.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import {
  IMPORTED_DEVICES_ANNOTATION,
  NEW_LAYOUT_ANNOTATION,
  RECORD_FINALIZER,
  STARTED_ANNOTATION,
} from '#api/names.ts';
import { assertHistory } from '#test/support/identity-history.ts';
import { editStoredRecord, deleteStoredRecord } from '#test/support/stored-records.ts';
import { aSnapshot } from '#test/support/snapshots.ts';
import { aNetworkDefinition } from '#test/support/secondary-networks.ts';
import type { CallOptions, Loose } from '#test/support/test-api.ts';
import { aVm, startVmPlane, type VmPlane } from '#test/support/vm-plane.ts';

const ALWAYS = { runStrategy: 'Always' };
const RECORDS = '/apis/identity.selfsame.io/v1/namespaces/default/virtualmachineidentities';
const VMS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachines';
const COLLECTOR: CallOptions = {
  user: { name: 'system:serviceaccount:kube-system:generic-garbage-collector', groups: ['system:masters'] },
};

async function startNetworkPlane(t: TestContext): Promise<VmPlane> {
  const plane = await startVmPlane(t);
  for (const name of ['default', 'second']) await plane.apply(aNetworkDefinition(name));
  return plane;
}

/** A VM with two interfaces and two disks, so that one can be removed before another. */
function aMachine(name: string, spec: Loose = ALWAYS): Loose {
  const nics = ['default', 'second'];
  const disks = ['root', 'data'];
  return aVm(name, spec, {
    domain: {
      devices: {
        interfaces: nics.map((nic) => ({ name: nic, bridge: {} })),
        disks: disks.map((disk) => ({ name: disk, disk: { bus: 'virtio' } })),
      },
    },
    networks: nics.map((nic) => ({ name: nic, multus: { networkName: nic } })),
    volumes: disks.map((disk) => ({ name: disk, emptyDisk: { capacity: '1Mi' } })),
  });
}

const find = (plane: VmPlane, name: string): Promise<Loose> => plane.find('VirtualMachineIdentity', name);
/** Returns what the guest has: every device with its address, and MACs. */
const hardwareOf = (plane: VmPlane, vm: string): Loose => plane.startsOf(vm).at(-1)!.machine;
/** Returns the record without when and from which reading it was learned. */
function contentOf({ spec, status }: Loose): Loose {
  const { machine, devices, freed } = status;
  return { spec, machine, freed, devices: devices.toSorted((a: Loose, b: Loose) => (a.id < b.id ? -1 : 1)) };
}
const lossOf = ({ status }: Loose): Loose => status.conditions.find(({ type }: Loose) => type === 'IdentityRecordLost');
const eventsOf = async (plane: VmPlane, vm: string): Promise<string[]> =>
  (await plane.eventsOf(vm)).filter((event) => /^IdentityRecord(Lost|Rebuilt) /.test(event));

test('a record is kept until its VM is gone', async (t) => {
  const plane = await startNetworkPlane(t);

  const deletions: Record<string, Loose> = {
    'in the background': { propagationPolicy: 'Background' },
    'in the foreground': { propagationPolicy: 'Foreground' },
  };
  for (const [how, options] of Object.entries(deletions)) {
    await t.test(`the VM is deleted ${how}: the record is deleted with it`, async () => {
      await plane.apply(aMachine('db'));
      assert.deepEqual((await find(plane, 'db')).metadata.finalizers, [RECORD_FINALIZER]);
      await plane.delete('VirtualMachine', 'db', options);
      assert.equal(await plane.find('VirtualMachine', 'db'), undefined);
      assert.equal(await find(plane, 'db'), undefined);
    });
  }

  await t.test('the VM is orphaned: the record stays, is adopted by the next VM, or can be deleted', async () => {
    await plane.apply(aMachine('db'));
    const { uid } = (await find(plane, 'db')).metadata;
    await plane.delete('VirtualMachine', 'db', { propagationPolicy: 'Orphan' });
    assert.equal((await find(plane, 'db')).metadata.ownerReferences, undefined);
    await plane.apply(aMachine('db'));
    const adopted = (await find(plane, 'db')).metadata;
    assert.deepEqual([adopted.uid, adopted.ownerReferences.length], [uid, 1]);
    assert.equal((await plane.call('DELETE', `${RECORDS}/db`)).status, 403, 'it is protected again');
    await plane.delete('VirtualMachine', 'db', { propagationPolicy: 'Orphan' });
    await plane.delete('VirtualMachineInstance', 'db');
    await plane.delete('VirtualMachineIdentity', 'db');
    assert.equal(await find(plane, 'db'), undefined);
  });

  await t.test('its namespace is deleted: nothing remains', async () => {
    const namespace = '/api/v1/namespaces/team';
    const body = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'team' } };
    await plane.server.api.ok('POST', '/api/v1/namespaces', { body });
    const machine = aMachine('db');
    await plane.server.api.ok('POST', VMS.replace('default', 'team'), { body: machine });
    await plane.settle();
    assert.equal((await plane.call('GET', `${RECORDS.replace('default', 'team')}/db`)).status, 200);
    await plane.server.api.ok('DELETE', namespace);
    await plane.advance(60_000);
    assert.equal((await plane.call('GET', namespace)).status, 404);
  });

  await t.test('a record of an older version gets the finalizer', async () => {
    await plane.apply(aMachine('old'));
    await editStoredRecord(plane, 'old', ({ metadata }) => delete metadata.finalizers);
    await plane.settle();
    assert.deepEqual((await find(plane, 'old')).metadata.finalizers, [RECORD_FINALIZER]);
  });

  await t.test('an accepted delete takes nothing from the VM, and completes with it', async () => {
    const before = await find(plane, 'old');
    const hardware = hardwareOf(plane, 'old');
    assert.equal((await plane.call('DELETE', `${RECORDS}/old`, COLLECTOR)).status, 200);
    await plane.runVerb('restart', 'old');
    assert.equal((await find(plane, 'old')).metadata.uid, before.metadata.uid);
    assert.deepEqual(hardwareOf(plane, 'old'), hardware, 'the guest finds every device at its address');
    await plane.delete('VirtualMachine', 'old');
    assert.equal(await find(plane, 'old'), undefined);
  });

  await t.test('a record whose VM was replaced by another of its name does not block that one', async () => {
    await plane.apply(aMachine('db', { runStrategy: 'Halted' }));
    await plane.runVerb('start', 'db');
    const first = (await find(plane, 'db')).metadata.uid;
    await plane.beginDelete('VirtualMachine', 'db');
    await plane.advance(1000);
    await plane.apply(aMachine('db'));
    assert.match(await plane.summaryOf('db'), /^Running/);
    assert.notEqual((await find(plane, 'db')).metadata.uid, first);
  });
});

test('lost records', async (t) => {
  const plane = await startNetworkPlane(t);

  await t.test('a record that is lost while the guest runs is rebuilt from the guest', async () => {
    await plane.apply(aMachine('runs'));
    const before = await find(plane, 'runs');
    const hardware = hardwareOf(plane, 'runs');
    await deleteStoredRecord(plane, 'runs');
    await plane.settle();
    const after = await find(plane, 'runs');
    assert.notEqual(after.metadata.uid, before.metadata.uid);
    assert.deepEqual(contentOf(after), contentOf(before), 'firmware, MACs and every address');
    assert.match(after.status.history.at(-1).cause, /^rebuilt from the running guest, instance [0-9a-f-]{36}$/);
    const vm = await plane.get('VirtualMachine', 'runs');
    assert.equal(lossOf(vm), undefined);
    assert.equal(vm.status.identityRecordUID, after.metadata.uid);
    const [lost, rebuilt, ...more] = await eventsOf(plane, 'runs');
    assert.match(lost!, /^IdentityRecordLost The identity record is lost; it is being rebuilt from the running guest$/);
    assert.match(rebuilt!, /^IdentityRecordRebuilt The identity record was lost and exists again \(rebuilt from the/);
    assert.deepEqual(more, []);
    await plane.runVerb('restart', 'runs');
    assert.deepEqual(hardwareOf(plane, 'runs'), hardware);
    assertHistory(vm, await find(plane, 'runs'));
  });

  await t.test('the record of a stopped VM is rebuilt from its newest snapshot', async () => {
    await plane.apply(aMachine('saved'));
    await plane.apply(aSnapshot('older', 'saved'));
    // The first disk is removed: its place is free, but is reused last.
    const { spec } = aMachine('saved');
    const { devices } = spec.template.spec.domain;
    devices.disks = devices.disks.slice(1);
    spec.template.spec.volumes = spec.template.spec.volumes.slice(1);
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'saved' }, spec: { template: spec.template } });
    await plane.runVerb('restart', 'saved');
    const saved = await find(plane, 'saved');
    assert.deepEqual(
      saved.status.freed.map(({ id }: Loose) => id),
      ['disk-root'],
    );
    await plane.apply(aSnapshot('newest', 'saved'));
    await plane.runVerb('stop', 'saved');
    const hardware = hardwareOf(plane, 'saved');

    await deleteStoredRecord(plane, 'saved');
    await plane.settle();
    const rebuilt = await find(plane, 'saved');
    assert.deepEqual(contentOf(rebuilt), contentOf(saved), 'before any start, with the free places');
    const history = rebuilt.status.history.map(({ cause }: Loose) => cause);
    assert.match(history.at(-1), /^rebuilt from snapshot newest of 20/);
    assert.equal(history.length, saved.status.history.length + 1, 'earlier entries stay');
    assert.equal((await eventsOf(plane, 'saved')).length, 2);
    await plane.runVerb('start', 'saved');
    assert.deepEqual(hardwareOf(plane, 'saved'), hardware);
    assertHistory(await plane.get('VirtualMachine', 'saved'), await find(plane, 'saved'));
  });

  await t.test('the record of an imported VM without a snapshot starts again from the import', async () => {
    const address = { type: 'pci', domain: '0x0000', bus: '0x07', slot: '0x00', function: '0x0' };
    const nic = { id: 'nic-default', type: 'interface', device: 'virtio', name: 'default', address, managed: true };
    const imported = JSON.stringify({ from: 'OVF', machine: 'pc-q35-7.2', devices: [nic] });
    const vm = aMachine('imported', { runStrategy: 'Manual' });
    await plane.apply({
      ...vm,
      metadata: { name: 'imported', annotations: { [IMPORTED_DEVICES_ANNOTATION]: imported } },
    });
    await plane.runVerb('start', 'imported');
    await plane.runVerb('stop', 'imported');
    await deleteStoredRecord(plane, 'imported');
    await plane.settle();
    const { status } = await find(plane, 'imported');
    assert.equal(status.history.at(-1).cause, 'rebuilt from the devices of its import');
    await plane.runVerb('start', 'imported');
    const row = (await find(plane, 'imported')).status.devices.find(({ id }: Loose) => id === 'nic-default');
    assert.deepEqual(row.address, address);
    assertHistory(await plane.get('VirtualMachine', 'imported'), await find(plane, 'imported'));
  });

  await t.test('a VM whose layout is lost does not start until a user accepts a new one', async (s) => {
    await plane.apply(aMachine('decided'));
    // With a gap before the other disk a fresh layout differs from the recorded one.
    const { spec } = aMachine('decided');
    const { devices } = spec.template.spec.domain;
    devices.disks = devices.disks.slice(1);
    spec.template.spec.volumes = spec.template.spec.volumes.slice(1);
    await plane.apply({ kind: 'VirtualMachine', metadata: { name: 'decided' }, spec: { template: spec.template } });
    await plane.runVerb('stop', 'decided');
    const lostUid = (await find(plane, 'decided')).metadata.uid;
    const starts = plane.startsOf('decided').length;
    await deleteStoredRecord(plane, 'decided');
    await plane.settle();

    const halted = await plane.get('VirtualMachine', 'decided');
    assert.equal(lossOf(halted).reason, 'DecisionRequired');
    const [report, ...more] = await eventsOf(plane, 'decided');
    assert.deepEqual(more, []);
    assert.ok(report!.includes(`its identity record ${lostUid} is lost`), report);
    assert.ok(report!.includes('virtctl identity renew decided'), report);

    await plane.runVerb('start', 'decided');
    await plane.advance(120_000);
    await plane.restartServer();
    assert.equal(plane.startsOf('decided').length, starts, 'it waits, also after a restart of the server');
    const waiting = await plane.get('VirtualMachine', 'decided');
    const failure = waiting.status.conditions.find(({ type }: Loose) => type === 'Failure');
    assert.equal(failure.reason, 'IdentityRecordLost');
    assert.equal(await find(plane, 'decided'), undefined);

    const annotate = (uid: string) =>
      plane.apply({
        kind: 'VirtualMachine',
        metadata: { name: 'decided', annotations: { [NEW_LAYOUT_ANNOTATION]: uid } },
      });
    await annotate('another-record');
    assert.equal(plane.startsOf('decided').length, starts, 'the decision names the lost record');
    await annotate(lostUid);
    assert.equal(plane.startsOf('decided').length, starts + 1);
    const record = await find(plane, 'decided');
    assert.equal(record.status.history.at(-1).cause, `a new layout was accepted after the loss of record ${lostUid}`);
    const decided = await plane.get('VirtualMachine', 'decided');
    assert.equal(lossOf(decided), undefined);
    assertHistory(decided, record);

    await s.test('the next loss needs its own decision', async () => {
      await plane.runVerb('stop', 'decided');
      await deleteStoredRecord(plane, 'decided');
      await plane.runVerb('start', 'decided');
      assert.equal(plane.startsOf('decided').length, starts + 1);
      assert.equal(lossOf(await plane.get('VirtualMachine', 'decided')).reason, 'DecisionRequired');
    });
  });

  await t.test('a record whose devices are gone counts as lost, too', async () => {
    await plane.apply(aMachine('emptied'));
    const hardware = hardwareOf(plane, 'emptied');
    await editStoredRecord(plane, 'emptied', (record) => delete record.status);
    await plane.settle();
    assert.match((await find(plane, 'emptied')).status.history.at(-1).cause, /^rebuilt from the running guest/);
    await plane.runVerb('stop', 'emptied');
    await editStoredRecord(plane, 'emptied', (record) => delete record.status);
    await plane.runVerb('start', 'emptied');
    assert.equal(lossOf(await plane.get('VirtualMachine', 'emptied')).reason, 'DecisionRequired');
    assert.equal((await find(plane, 'emptied')).status, undefined, 'nothing is reported before the loss is certain');
    assert.deepEqual(hardwareOf(plane, 'emptied'), hardware);
    assert.equal(plane.guests('emptied').length, 0);
  });

  await t.test('a VM that never ran, or arrives as a manifest, has lost nothing', async () => {
    await plane.apply(aMachine('moved'));
    await plane.runVerb('stop', 'moved');
    const { apiVersion, kind, spec, status } = await plane.get('VirtualMachine', 'moved');
    await plane.delete('VirtualMachine', 'moved');
    await plane.apply({ apiVersion, kind, metadata: { name: 'moved' }, spec, status });
    await plane.runVerb('start', 'moved');
    assert.match(await plane.summaryOf('moved'), /^Running/);
    assert.deepEqual(await eventsOf(plane, 'moved'), []);
  });
});

/** Returns an object as a backup tool saves and restores it: without uid, revision and status. */
function asBackup({ apiVersion, kind, metadata, spec }: Loose): Loose {
  const { name, annotations, labels, ownerReferences } = metadata;
  return { apiVersion, kind, metadata: { name, annotations, labels, ownerReferences }, spec };
}

/** Returns the spec with the first disk missing, so that a fresh layout would differ from the recorded one. */
function withoutFirstDisk(name: string): Loose {
  const { spec } = aMachine(name);
  const { devices } = spec.template.spec.domain;
  devices.disks = devices.disks.slice(1);
  spec.template.spec.volumes = spec.template.spec.volumes.slice(1);
  return { kind: 'VirtualMachine', metadata: { name }, spec: { template: spec.template } };
}

test('a VM that a backup tool restored with a new uid and without its status', async (t) => {
  const plane = await startNetworkPlane(t);

  /** Runs a VM, takes a backup of it and of its record, and deletes it. */
  async function backUpAndDelete(name: string): Promise<{ vm: Loose; record: Loose; hardware: Loose }> {
    await plane.apply(aMachine(name));
    await plane.apply(withoutFirstDisk(name));
    await plane.runVerb('restart', name);
    const hardware = hardwareOf(plane, name);
    await plane.runVerb('stop', name);
    const [vm, record] = [await plane.get('VirtualMachine', name), await find(plane, name)];
    await plane.delete('VirtualMachine', name);
    assert.equal(await find(plane, name), undefined);
    return { vm, record, hardware };
  }

  async function restoreStatus({ metadata: { name }, status }: Loose): Promise<void> {
    await plane.server.api.ok('PATCH', `${RECORDS}/${name}/status`, {
      body: { status },
    });
    await plane.settle();
  }

  await t.test('it adopts the record that was restored with it, and keeps every address', async () => {
    const { vm, record, hardware } = await backUpAndDelete('adopts');
    const { ownerReferences: _, ...metadata } = asBackup(record).metadata;
    await plane.apply({ ...asBackup(record), metadata });
    await restoreStatus(record);
    await plane.apply({ ...asBackup(vm), spec: { ...vm.spec, runStrategy: 'Halted' } });
    const adopted = await find(plane, 'adopts');
    assert.equal(adopted.metadata.ownerReferences.length, 1);
    assert.deepEqual(adopted.metadata.finalizers, [RECORD_FINALIZER]);
    await plane.runVerb('start', 'adopts');
    assert.deepEqual(hardwareOf(plane, 'adopts'), hardware);
    const restored = await plane.get('VirtualMachine', 'adopts');
    assert.equal(restored.metadata.annotations[STARTED_ANNOTATION], `default/adopts/${restored.metadata.uid}`);
    assert.equal(lossOf(restored), undefined);
  });

  await t.test('it adopts a record that still names the original as its owner', async () => {
    const { vm, record, hardware } = await backUpAndDelete('stale');
    await plane.server.api.ok('POST', VMS, { body: asBackup(vm) });
    const metadata = { ...asBackup(record).metadata, finalizers: [RECORD_FINALIZER] };
    await plane.server.api.ok('POST', RECORDS, { body: { ...asBackup(record), metadata } });
    await restoreStatus(record);
    const { ownerReferences } = (await find(plane, 'stale')).metadata;
    const { uid } = (await plane.get('VirtualMachine', 'stale')).metadata;
    assert.deepEqual(
      ownerReferences.map((owner: Loose) => owner.uid),
      [uid],
      'the garbage collector must not delete it',
    );
    await plane.runVerb('start', 'stale');
    assert.deepEqual(hardwareOf(plane, 'stale'), hardware);
  });

  await t.test('without a record it is rebuilt from the newest snapshot of the original', async () => {
    await plane.apply(aMachine('saved'));
    await plane.apply(withoutFirstDisk('saved'));
    await plane.runVerb('restart', 'saved');
    await plane.apply(aSnapshot('nightly', 'saved'));
    await plane.runVerb('stop', 'saved');
    const hardware = hardwareOf(plane, 'saved');
    const vm = await plane.get('VirtualMachine', 'saved');
    await plane.delete('VirtualMachine', 'saved');
    await plane.apply(asBackup(vm));
    await plane.runVerb('start', 'saved');
    assert.deepEqual(hardwareOf(plane, 'saved'), hardware);
    assert.equal((await eventsOf(plane, 'saved')).length, 2, 'the loss and the recovery are reported');
    const record = await find(plane, 'saved');
    assert.ok(
      record.status.history.some(({ cause }: Loose) => cause.startsWith('rebuilt from snapshot nightly of 20')),
    );
    assertHistory(await plane.get('VirtualMachine', 'saved'), record);
  });

  await t.test('without a record and a snapshot it waits for a decision, and keeps its MAC addresses', async () => {
    const { vm, record, hardware } = await backUpAndDelete('waits');
    const starts = plane.startsOf('waits').length;
    await plane.apply(asBackup(vm));
    await plane.runVerb('start', 'waits');
    await plane.restartServer();
    assert.equal(plane.startsOf('waits').length, starts);
    const waiting = await plane.get('VirtualMachine', 'waits');
    assert.equal(lossOf(waiting).reason, 'DecisionRequired');
    assert.match(
      lossOf(waiting).message,
      /it was restored from a backup of the virtual machine with uid [0-9a-f-]{36}/,
    );
    await plane.apply({
      kind: 'VirtualMachine',
      metadata: { name: 'waits', annotations: { [NEW_LAYOUT_ANNOTATION]: vm.metadata.uid } },
    });
    assert.equal(plane.startsOf('waits').length, starts + 1);
    assert.notDeepEqual(hardwareOf(plane, 'waits'), hardware, 'the accepted layout is a new one');
    const renewed = await find(plane, 'waits');
    assert.deepEqual(renewed.spec.interfaces, record.spec.interfaces);
    assert.match(renewed.status.history.at(-1).cause, /^a new layout was accepted after the loss of record/);
  });

  await t.test('a copy of its manifest under another name is a new machine', async () => {
    await plane.apply(aMachine('source'));
    const source = await plane.get('VirtualMachine', 'source');
    const { metadata, ...rest } = asBackup(source);
    await plane.apply({ ...rest, metadata: { ...metadata, name: 'copy' } });
    assert.match(await plane.summaryOf('copy'), /^Running/);
    assert.deepEqual(await eventsOf(plane, 'copy'), []);
    const [mac] = (await find(plane, 'copy')).spec.interfaces;
    assert.notEqual(mac.macAddress, (await find(plane, 'source')).spec.interfaces[0].macAddress);
  });
});
