import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VM_RESTORE_FINALIZER, VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import type { MigrationState } from '#api/migration/migration-state.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VmSnapshotStatus, VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import { lockOf } from '#controllers/vm/lock.ts';
import { vmKeysOfUnfinishedRestore, vmKeysOfUnfinishedSnapshot } from '#controllers/shared/indexes/unfinished-by-vm.ts';
import { aVm, aVmi, DELETED } from '#controllers/vm/testing/vm-world.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

const reference = { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' };
const storedMetadata = (name: string, minute: number, metadata: ObjectMeta) => ({
  namespace: 'ns',
  name,
  uid: `${name}-uid`,
  resourceVersion: '1',
  creationTimestamp: `2026-01-01T12:0${minute}:00Z`,
  ...metadata,
});

function aSnapshot(
  name: string,
  minute: number,
  metadata: ObjectMeta = {},
  status?: VmSnapshotStatus,
): Stored<VirtualMachineSnapshot> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: storedMetadata(name, minute, metadata),
    spec: { source: reference },
    ...(status === undefined ? {} : { status }),
  };
}

function aRestore(name: string, minute: number, metadata: ObjectMeta = {}): Stored<VirtualMachineRestore> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: storedMetadata(name, minute, metadata),
    spec: { target: reference, virtualMachineSnapshotName: 's' },
    status: { targetUID: 'vm-uid' },
  };
}

interface Case {
  readonly snapshots?: Stored<VirtualMachineSnapshot>[];
  readonly restores?: Stored<VirtualMachineRestore>[];
  readonly status?: VmStatus;
  readonly metadata?: ObjectMeta;
  readonly migrationState?: MigrationState;
  readonly want: string | undefined;
}

const underDeletion = { ...DELETED, finalizers: [VM_SNAPSHOT_FINALIZER] };
const restoreUnderDeletion = { ...DELETED, finalizers: [VM_RESTORE_FINALIZER] };

const cases: Record<string, Case> = {
  'a VM without snapshots and restores is free': { want: undefined },
  'a VM is free when its holder is finished or gone': { status: { snapshotInProgress: 'a' }, want: undefined },
  'a snapshot holds its VM': { snapshots: [aSnapshot('a', 1)], want: 'snapshot a' },
  'a restore holds its VM': { restores: [aRestore('r', 1)], want: 'restore r' },
  'the oldest one holds the VM': { snapshots: [aSnapshot('a', 2), aSnapshot('b', 1)], want: 'snapshot b' },
  'the first by name holds the VM if both have the same age': {
    snapshots: [aSnapshot('b', 1), aSnapshot('a', 1)],
    want: 'snapshot a',
  },
  'a restore that is older than a snapshot holds the VM': {
    snapshots: [aSnapshot('a', 2)],
    restores: [aRestore('r', 1)],
    want: 'restore r',
  },
  'a snapshot that is older than a restore holds the VM': {
    snapshots: [aSnapshot('a', 1)],
    restores: [aRestore('r', 2)],
    want: 'snapshot a',
  },
  'the holder keeps the VM although there is an older one': {
    snapshots: [aSnapshot('a', 2)],
    restores: [aRestore('r', 1)],
    status: { snapshotInProgress: 'a' },
    want: 'snapshot a',
  },
  'a snapshot and a restore of the same name are different holders': {
    snapshots: [aSnapshot('x', 2)],
    restores: [aRestore('x', 1)],
    status: { snapshotInProgress: 'x' },
    want: 'snapshot x',
  },
  'the next one holds the VM when the holder is finished': {
    snapshots: [aSnapshot('b', 2)],
    restores: [aRestore('r', 3)],
    status: { snapshotInProgress: 'a' },
    want: 'snapshot b',
  },
  'a holder under deletion keeps the VM while its controller cleans up': {
    snapshots: [aSnapshot('a', 2, underDeletion), aSnapshot('b', 1)],
    status: { snapshotInProgress: 'a' },
    want: 'snapshot a',
  },
  'a restore under deletion keeps the VM while its controller cleans up': {
    restores: [aRestore('r', 2, restoreUnderDeletion)],
    status: { restoreInProgress: 'r' },
    want: 'restore r',
  },
  'a holder under deletion without its finalizer does not keep the VM': {
    snapshots: [aSnapshot('a', 1, { ...DELETED, finalizers: ['another'] }), aSnapshot('b', 2)],
    status: { snapshotInProgress: 'a' },
    want: 'snapshot b',
  },
  'a snapshot under deletion does not become the holder': {
    snapshots: [aSnapshot('a', 1, underDeletion)],
    want: undefined,
  },
  'no work begins on a VM under deletion': {
    snapshots: [aSnapshot('a', 1)],
    restores: [aRestore('r', 1)],
    metadata: DELETED,
    want: undefined,
  },
  'no work begins while the guest migrates': {
    snapshots: [aSnapshot('a', 1)],
    restores: [aRestore('r', 1)],
    migrationState: { migrationUid: 'm' },
    want: undefined,
  },
  'work begins when the migration is over': {
    snapshots: [aSnapshot('a', 1)],
    migrationState: { migrationUid: 'm', completed: true },
    want: 'snapshot a',
  },
  'work that has begun continues while the guest migrates': {
    snapshots: [aSnapshot('a', 1)],
    status: { snapshotInProgress: 'a' },
    migrationState: { migrationUid: 'm' },
    want: 'snapshot a',
  },
  'work that has begun continues while the VM is being deleted': {
    snapshots: [aSnapshot('a', 1)],
    metadata: DELETED,
    status: { snapshotInProgress: 'a' },
    want: 'snapshot a',
  },
};

for (const [name, { snapshots = [], restores = [], status, metadata, migrationState, want }] of Object.entries(cases)) {
  test(name, () => {
    const vmi = aVmi('Running', { status: { migrationState } });
    const lock = lockOf(aVm({ status, metadata }), { snapshots, restores }, vmi);
    assert.equal(lock && `${lock.kind} ${lock.name}`, want);
  });
}

test('a restore that waits for its snapshot does not hold the VM', () => {
  assert.deepEqual(vmKeysOfUnfinishedRestore({ ...aRestore('r', 1), status: undefined }), []);
  assert.deepEqual(vmKeysOfUnfinishedRestore({ ...aRestore('r', 1), status: { complete: false } }), []);
});

test('a finished snapshot under deletion does not hold the VM', () => {
  const conditions = [{ type: 'Progressing', status: 'False' as const, reason: 'Completed' }];
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1, underDeletion, { phase: 'Deleting', conditions })), []);
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1, underDeletion, { phase: 'Deleting' })), ['ns/db']);
});

test('only unfinished work that names a VM is in the index', () => {
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1)), ['ns/db']);
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1, {}, { phase: 'InProgress' })), ['ns/db']);
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1, {}, { phase: 'Succeeded' })), []);
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(aSnapshot('a', 1, {}, { phase: 'Failed' })), []);
  const other = { ...aSnapshot('a', 1), spec: { source: { kind: 'VirtualMachinePool', name: 'db' } } };
  assert.deepEqual(vmKeysOfUnfinishedSnapshot(other), []);
  const restore = aRestore('r', 1);
  assert.deepEqual(vmKeysOfUnfinishedRestore(restore), ['ns/db']);
  assert.deepEqual(
    vmKeysOfUnfinishedRestore({ ...restore, status: { restores: [] } }),
    ['ns/db'],
    'it creates its target',
  );
  assert.deepEqual(vmKeysOfUnfinishedRestore({ ...restore, status: { complete: true } }), []);
  const failed = { conditions: [{ type: 'Failure', status: 'True' as const }] };
  assert.deepEqual(vmKeysOfUnfinishedRestore({ ...restore, status: failed }), []);
});
