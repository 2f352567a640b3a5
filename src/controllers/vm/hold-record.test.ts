import assert from 'node:assert/strict';
import { test } from 'node:test';
import { RECORD_FINALIZER, VM_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { decideVm } from '#controllers/vm/decide-vm.ts';
import { holdRecord, isReleasable, missingHold } from '#controllers/vm/hold-record.ts';
import { isForeign, recordIdentity } from '#controllers/vm/identity.ts';
import { aRecord, aVm, aVmi, aWorld, DELETED } from '#controllers/vm/vm-world.fixture.ts';
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
  'a record that nobody deletes stays': { record: aRecord(), want: false },
  'a deleted record stays while its VM is there': { record: deleted, vm: aVm(), want: false },
  'it stays while its VM stops': {
    record: deleted,
    vm: aVm({ metadata: { ...DELETED, finalizers: [VM_FINALIZER, 'foregroundDeletion'] } }),
    want: false,
  },
  'it goes when its VM has stopped and waits for it': {
    record: deleted,
    vm: aVm({ metadata: { ...DELETED, finalizers: ['foregroundDeletion'] } }),
    want: true,
  },
  'it stays with a VM that never started and is not deleted': {
    record: deleted,
    vm: aVm({ metadata: { finalizers: [] } }),
    want: false,
  },
  'it goes when its VM is gone': { record: deleted, want: true },
  'it goes when another VM has the name': { record: deleted, vm: another, want: true },
  'one that no VM owns goes': {
    record: aRecord(aVm(), { ...DELETED, ownerReferences: [] }),
    vm: aVm(),
    want: true,
  },
  'one without our finalizer is left alone': { record: aRecord(aVm(), { ...DELETED, finalizers: ['x'] }), want: false },
};

for (const [sentence, { record, vm, want }] of Object.entries(releases)) {
  test(sentence, () => assert.equal(isReleasable(record, vm), want));
}

test('a release takes off our finalizer and no other, in the state that was seen', () => {
  const identity = aRecord(aVm(), { ...DELETED, finalizers: ['foregroundDeletion', RECORD_FINALIZER] });
  const plan = decideVm(aWorld({ vm: aVm({ metadata: DELETED }), identity, recordIsReleasable: true }));
  const [change, ...more] = plan.changes;
  assert.deepEqual(more, []);
  assert.ok(change?.do === 'patch');
  const metadata = { resourceVersion: '1', finalizers: ['foregroundDeletion'] };
  assert.deepEqual([change.type.kind, change.patch.body], ['VirtualMachineIdentity', { metadata }]);
});

test('a record is made with the finalizer', () => {
  const [change] = recordIdentity(aWorld({ identity: undefined }));
  assert.ok(change?.do === 'create');
  assert.deepEqual(change.object.metadata.finalizers, [RECORD_FINALIZER]);
});

test('a record of an older version gets it, whatever the VM is to do', () => {
  const identity = aRecord(aVm(), { finalizers: ['x'] });
  for (const vm of [aVm(), aVm({ runStrategy: 'Halted' })]) {
    const { changes } = decideVm(aWorld({ vm, identity }));
    const bodies = changes.map((change) => (change.do === 'patch' ? change.patch.body : undefined));
    assert.deepEqual(bodies, [{ metadata: { resourceVersion: '1', finalizers: ['x', RECORD_FINALIZER] } }]);
  }
  assert.deepEqual(holdRecord(aVm(), aRecord(another, { finalizers: [] })), [], 'but not that of another VM');
  assert.deepEqual(holdRecord(aVm(), aRecord(aVm(), { ...DELETED, finalizers: [] })), [], 'nor one that goes');
});

test('a record that becomes the VM’s gets owner and finalizer at once', () => {
  const vm = aVm();
  const orphan = aRecord(vm, { ownerReferences: [], finalizers: [] });
  const held = { ownerReferences: [ownedByVm(vm)], finalizers: [RECORD_FINALIZER] };
  assert.deepEqual(missingHold(vm, orphan), held);
  const plan = decideVm(aWorld({ vm, vmi: aVmi('Running', { vm }), identity: orphan }));
  assert.deepEqual(
    plan.changes.map((change) => (change.do === 'patch' ? change.patch.body : undefined)),
    [{ metadata: { resourceVersion: '1', ...held } }],
  );
});

test('a record that is being deleted and held is still the VM’s', () => {
  assert.equal(isForeign(aVm(), deleted), false);
  assert.equal(isForeign(aVm(), aRecord(aVm(), { ...DELETED, finalizers: [] })), true);
  assert.equal(isForeign(another, deleted), true);
  assert.equal(isForeign(aVm(), aRecord(aVm(), { ...DELETED, ownerReferences: [] })), true);
});
