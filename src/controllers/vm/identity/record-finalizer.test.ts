import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECORD_FINALIZER, VM_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { decideVm } from '#controllers/vm/decide-vm.ts';
import { addRecordFinalizer, isReleasable, missingRecordMetadata } from '#controllers/vm/identity/record-finalizer.ts';
import { isForeignRecord, recordIdentity } from '#controllers/vm/identity/identity.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED } from '#controllers/vm/testing/vm-world.ts';
import type { Stored } from '#kube/meta.ts';

interface Release {
  readonly record: Stored<VirtualMachineIdentity>;
  /** Seen live. */
  readonly vm?: Stored<VirtualMachine>;
  readonly want: boolean;
}

const deleted = aRecord(aVm(), DELETED);
const another = aVm({ metadata: { uid: 'another-vm' } });

const releases: Record<string, Release> = {
  'a record that is not being deleted stays': { record: aRecord(), want: false },
  'a deleted record stays while its VM exists': { record: deleted, vm: aVm(), want: false },
  'a deleted record stays while its VM stops': {
    record: deleted,
    vm: aVm({ metadata: { ...DELETED, finalizers: [VM_FINALIZER, 'foregroundDeletion'] } }),
    want: false,
  },
  'a deleted record is released when its VM has stopped and waits for it': {
    record: deleted,
    vm: aVm({ metadata: { ...DELETED, finalizers: ['foregroundDeletion'] } }),
    want: true,
  },
  'a deleted record of a VM that never started stays while the VM exists': {
    record: deleted,
    vm: aVm({ metadata: { finalizers: [] } }),
    want: false,
  },
  'a deleted record is released when its VM is gone': { record: deleted, want: true },
  'a deleted record is released when another VM has the name': { record: deleted, vm: another, want: true },
  'a deleted record without an owner is released': {
    record: aRecord(aVm(), { ...DELETED, ownerReferences: [] }),
    vm: aVm(),
    want: true,
  },
  'a record without our finalizer is left alone': {
    record: aRecord(aVm(), { ...DELETED, finalizers: ['x'] }),
    want: false,
  },
};

for (const [sentence, { record, vm, want }] of Object.entries(releases)) {
  test(sentence, () => assert.equal(isReleasable(record, vm), want));
}

test('a release removes our finalizer and no other, on the observed version', () => {
  const identity = aRecord(aVm(), { ...DELETED, finalizers: ['foregroundDeletion', RECORD_FINALIZER] });
  const plan = decideVm(aWorld({ vm: aVm({ metadata: DELETED }), identity, recordIsReleasable: true }));
  const [change, ...more] = plan.changes;
  assert.deepEqual(more, []);
  assert.ok(change?.do === 'patch');
  const metadata = { resourceVersion: '1', finalizers: ['foregroundDeletion'] };
  assert.deepEqual([change.type.kind, change.patch.body], ['VirtualMachineIdentity', { metadata }]);
});

test('a record is created with the finalizer', () => {
  const [change] = recordIdentity(aWorld({ identity: undefined }));
  assert.ok(change?.do === 'create');
  assert.deepEqual(change.object.metadata.finalizers, [RECORD_FINALIZER]);
});

test('a record of an older version gets the finalizer under every run strategy', () => {
  const identity = aRecord(aVm(), { finalizers: ['x'] });
  for (const vm of [aVm(), aVm({ runStrategy: 'Halted' })]) {
    const { changes } = decideVm(aWorld({ vm, identity }));
    const bodies = changes.map((change) => (change.do === 'patch' ? change.patch.body : undefined));
    assert.deepEqual(bodies, [{ metadata: { resourceVersion: '1', finalizers: ['x', RECORD_FINALIZER] } }]);
  }
  assert.deepEqual(
    addRecordFinalizer(aVm(), aRecord(another, { finalizers: [] })),
    [],
    'the record of another VM is not changed',
  );
  assert.deepEqual(
    addRecordFinalizer(aVm(), aRecord(aVm(), { ...DELETED, finalizers: [] })),
    [],
    'a record under deletion is not changed',
  );
});

test('an adopted record gets owner and finalizer at once', () => {
  const vm = aVm();
  const orphan = aRecord(vm, { ownerReferences: [], finalizers: [] });
  const held = { ownerReferences: [vmOwnerReference(vm)], finalizers: [RECORD_FINALIZER] };
  assert.deepEqual(missingRecordMetadata(vm, orphan), held);
  const plan = decideVm(aWorld({ vm, vmi: aVmi('Running', { vm }), identity: orphan }));
  assert.deepEqual(
    plan.changes.map((change) => (change.do === 'patch' ? change.patch.body : undefined)),
    [{ metadata: { resourceVersion: '1', ...held } }],
  );
});

test('a record under deletion with our finalizer still belongs to the VM', () => {
  assert.equal(isForeignRecord(aVm(), deleted), false);
  assert.equal(isForeignRecord(aVm(), aRecord(aVm(), { ...DELETED, finalizers: [] })), true);
  assert.equal(isForeignRecord(another, deleted), true);
  assert.equal(isForeignRecord(aVm(), aRecord(aVm(), { ...DELETED, ownerReferences: [] })), true);
});
