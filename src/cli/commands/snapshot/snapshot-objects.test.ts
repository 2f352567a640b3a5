import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aSpec, aVm } from '#api/validation/testing/valid-objects.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { cloneText, cloneWarnings } from '#cli/commands/snapshot/clone.ts';
import { includesState, refuseSnapshot, restoreText } from '#cli/commands/snapshot/restore.ts';
import { checkVmName, judgeRestore, judgeSnapshot } from '#cli/commands/snapshot/snapshot-objects.ts';
import { snapshotText } from '#cli/commands/snapshot/snapshot.ts';
import type { Stored } from '#kube/meta.ts';

const ID = { name: 's1', uid: 'u1' };
const source = { kind: 'VirtualMachine', name: 'db' };
const snapshot = (status: object, metadata: object = {}) =>
  ({ metadata: { ...ID, ...metadata }, spec: { source }, status }) as Stored<VirtualMachineSnapshot>;
const restore = (status: object, metadata: object = {}) => {
  const spec = { target: source, virtualMachineSnapshotName: 's1' };
  return { metadata: { ...ID, ...metadata }, spec, status } as Stored<VirtualMachineRestore>;
};
const progressing = (message: string) => ({ conditions: [{ type: 'Progressing', status: 'True', message }] });
const READY = { phase: 'Succeeded', readyToUse: true };
const DELETED = { deletionTimestamp: '2026-01-01T00:00:00Z' };

const ends: Record<string, { state: object; want: object }> = {
  'a new snapshot is in progress': {
    state: judgeSnapshot(ID, snapshot({}), undefined),
    want: { waiting: 'snapshot s1: InProgress' },
  },
  'a snapshot shows what it waits for': {
    state: judgeSnapshot(ID, snapshot(progressing('Source not locked')), undefined),
    want: { waiting: 'snapshot s1: InProgress (Source not locked)' },
  },
  'a snapshot that holds its VM is not done': {
    state: judgeSnapshot(ID, snapshot(READY), aVm({ status: { snapshotInProgress: 's1' } })),
    want: { waiting: 'snapshot s1: Succeeded (it still holds the VM)' },
  },
  'a snapshot without its content is not done': {
    state: judgeSnapshot(ID, snapshot({ phase: 'Succeeded', readyToUse: false, error: { message: 'gone' } }), aVm()),
    want: { waiting: 'snapshot s1: Succeeded (gone)' },
  },
  'a ready snapshot is done': { state: judgeSnapshot(ID, snapshot(READY), aVm()), want: { done: snapshot(READY) } },
  'a snapshot fails with its reason': {
    state: judgeSnapshot(ID, snapshot({ phase: 'Failed', error: { message: 'deadline exceeded' } }), aVm()),
    want: { failed: 'Cannot take snapshot s1: deadline exceeded' },
  },
  'a snapshot can be deleted meanwhile': {
    state: judgeSnapshot(ID, snapshot(READY, DELETED), aVm()),
    want: { failed: 'Cannot take snapshot s1: it was deleted meanwhile' },
  },
  'another snapshot of the same name is not ours': {
    state: judgeSnapshot(ID, snapshot(READY, { uid: 'u2' }), aVm()),
    want: { failed: 'Cannot take snapshot s1: it was deleted meanwhile' },
  },
  'a restore shows what it waits for': {
    state: judgeRestore(ID, restore(progressing('Waiting for claims')), aVm()),
    want: { waiting: 'restore s1: in progress (Waiting for claims)' },
  },
  'a restore that holds its target is not done': {
    state: judgeRestore(ID, restore({ complete: true }), aVm({ status: { restoreInProgress: 's1' } })),
    want: { waiting: 'restore s1: complete (it still holds the VM)' },
  },
  'a complete restore is done': {
    state: judgeRestore(ID, restore({ complete: true }), aVm()),
    want: { done: restore({ complete: true }) },
  },
  'a restore fails with its reason': {
    state: judgeRestore(ID, restore({ conditions: [{ type: 'Failure', status: 'True', message: 'no room' }] }), aVm()),
    want: { failed: 'Cannot complete restore s1: no room' },
  },
  'a restore can be deleted meanwhile': {
    state: judgeRestore(ID, undefined, aVm()),
    want: { failed: 'Cannot complete restore s1: it was deleted meanwhile' },
  },
};
for (const [title, { state, want }] of Object.entries(ends)) test(title, () => assert.deepEqual(state, want));

const refusals: Record<string, { of: VirtualMachineSnapshot; want: string | undefined }> = {
  'a failed snapshot is refused': {
    of: snapshot({ phase: 'Failed', error: { message: 'too late' } }),
    want: 'snapshot s1 has failed (too late); choose another one',
  },
  'a snapshot in progress is waited for': { of: snapshot({ phase: 'InProgress' }), want: undefined },
};
for (const [title, { of, want }] of Object.entries(refusals)) {
  test(title, () => assert.equal(refuseSnapshot({ vm: 'db', snapshot: 's1' }, of), want));
}

test('the snapshot of another VM is refused', () => {
  const want = 'snapshot s1 is of VM db; use virtctl restore db --snapshot=s1';
  assert.equal(refuseSnapshot({ vm: 'web', snapshot: 's1' }, snapshot(READY)), want);
});

test('the results name what was made', () => {
  const volumes = { includedVolumes: ['data'], excludedVolumes: ['seed'] };
  assert.equal(
    snapshotText(snapshot({ ...READY, snapshotVolumes: volumes, indications: ['Online', 'GuestAgent'] })),
    'Snapshot s1 is ready; volumes: data; not included: seed; taken as: Online, GuestAgent',
  );
  assert.equal(snapshotText(snapshot(READY)), 'Snapshot s1 is ready; it contains no volumes');
  const restores = [{ volumeName: 'data', persistentVolumeClaim: 'c1', volumeSnapshotName: 'v1' }];
  assert.equal(
    restoreText(restore({ complete: true, restores })),
    'VM db was restored from snapshot s1; volume data is claim c1; it is stopped, start it with virtctl start db',
  );
});

test('a snapshot with persistent state is recognized', () => {
  const withVolumes = (...includedVolumes: string[]) => snapshot({ ...READY, snapshotVolumes: { includedVolumes } });
  assert.equal(includesState(withVolumes('data', 'persistent-state-for-db')), true);
  assert.equal(includesState(withVolumes('data')), false);
  assert.equal(includesState(snapshot({})), false);
});

test('only a valid name can be that of a clone', () => {
  checkVmName('copy');
  for (const wrong of ['', 'no name', 'Copy']) assert.throws(() => checkVmName(wrong), /cannot be the name of a VM: /);
});

const vm = (patch: object) => aVm(patch) as Stored<VirtualMachine>;
const template = (patch: object) => ({ spec: { template: { spec: aSpec(patch) } } });

test('a clone warns about what it shares with its source', () => {
  assert.deepEqual(cloneWarnings(vm({}), 'copy', { omitState: false }), []);
  const withState = vm(template({ domain: { devices: { tpm: { persistent: true } } } }));
  const [state, ...none] = cloneWarnings(withState, 'copy', { omitState: false });
  assert.deepEqual(cloneWarnings(withState, 'copy', { omitState: true }), []);
  assert.match(state ?? '', /^VM copy gets a copy of the persistent state of VM db: the keys in its TPM .* the same/);
  assert.deepEqual(none, []);
  const disk = { name: 'scratch', hostDisk: { path: '/disk.img', type: 'Disk' } };
  assert.deepEqual(cloneWarnings(vm(template({ volumes: [disk] })), 'copy', { omitState: false }), [
    'VM copy uses the same host disk scratch as VM db; do not run both at once',
  ]);
});

test('a clone has another identity', () => {
  const identity = (uuid: string, macAddress: string | null) =>
    template({ domain: { firmware: { uuid }, devices: { interfaces: [{ name: 'default', macAddress }] } } });
  const copy = (mac: string | null) => vm({ metadata: { name: 'copy' }, ...identity('other', mac) });
  const start = 'it is stopped, start it with virtctl start copy';
  assert.equal(
    cloneText(vm({}), copy('02:11:22:33:44:55')),
    `VM copy is a clone of VM db; firmware uuid other; MAC addresses: default 02:11:22:33:44:55; ${start}`,
  );
  assert.equal(
    cloneText(vm({}), copy(null)),
    `VM copy is a clone of VM db; firmware uuid other; its MAC addresses are new as well; ${start}`,
  );
  assert.throws(() => cloneText(vm({}), vm({ metadata: { name: 'copy' } })), /^CommandError: VM copy is not a clone: /);
});
