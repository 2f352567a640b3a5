import assert from 'node:assert/strict';
import { test } from 'node:test';
import { claimDeletionCondition, claimDeletionEvents } from '#controllers/vm/deleted-claims.ts';
import { aVm, aVmi, aWorld, DELETED } from '#controllers/vm/testing/vm-world.ts';
import type { DeletedClaim, VmWorld } from '#controllers/vm/vm-world.ts';

const disk = (name: string): DeletedClaim => ({ name, holds: 'disk' });
const STATE: DeletedClaim = { name: 'tpm', holds: 'state' };
const KEEP = 'to keep the data, copy it or set the reclaim policy of the PersistentVolume to Retain, then stop the VM';
const RUNS = aVmi('Running');

const cases: Record<string, { world: Partial<VmWorld>; want?: string }> = {
  'no claim is being deleted': { world: { vmi: RUNS } },
  'a disk of a running VM': {
    world: { vmi: RUNS, deletedClaims: [disk('root')] },
    want: `PersistentVolumeClaim "root" of the VM is being deleted: its data is deleted when the VM stops, and until then the VM cannot be migrated, restarted or snapshotted; ${KEEP}`,
  },
  'a disk of a running VM that is protected': {
    world: {
      vm: aVm({ metadata: { labels: { 'kubevirt.io/vm-delete-protection': 'true' } } }),
      vmi: RUNS,
      deletedClaims: [{ ...disk('root'), volume: 'pv-1' }],
    },
    want: 'PersistentVolumeClaim "root" of the VM is being deleted: the VM is protected, so its data stays in PersistentVolume "pv-1" when the VM stops, with the reclaim policy Retain; until then the VM cannot be restarted. After the stop, remove spec.claimRef of the volume and create the claim again, with spec.volumeName',
  },
  'the state of a running VM': {
    world: { vmi: RUNS, deletedClaims: [STATE] },
    want: `PersistentVolumeClaim "tpm" of the VM is being deleted: its data is deleted when the VM stops, and until then the VM cannot be restarted; ${KEEP}`,
  },
  'a disk of a stopped VM': {
    world: { deletedClaims: [disk('root')] },
    want: 'PersistentVolumeClaim "root" of the VM is being deleted: the VM cannot start with it; create a claim of that name once it is gone',
  },
  'the state of a stopped VM': {
    world: { deletedClaims: [STATE] },
    want: 'PersistentVolumeClaim "tpm" of the VM is being deleted: the next start begins with empty persistent state',
  },
  'many disks': {
    world: { deletedClaims: ['a', 'b', 'c', 'd'].map(disk) },
    want: 'PersistentVolumeClaim "a", "b", "c" and others of the VM is being deleted: the VM cannot start with it; create a claim of that name once it is gone',
  },
  'a disk of a VM under deletion': {
    world: { vm: aVm({ metadata: DELETED }), vmi: RUNS, deletedClaims: [disk('root')] },
  },
};

for (const [sentence, { world, want }] of Object.entries(cases)) {
  test(`ClaimBeingDeleted: ${sentence}`, () => {
    const first = aWorld(world);
    assert.equal(claimDeletionCondition(first)?.message, want);
    assert.deepEqual(
      claimDeletionEvents(first).map(({ reason, message }) => [reason, message]),
      want === undefined ? [] : [['ClaimBeingDeleted', want]],
    );
  });
}

test('the Event is not repeated', () => {
  const deletedClaims = [disk('root')];
  const condition = claimDeletionCondition(aWorld({ deletedClaims }));
  assert.ok(condition);
  const vm = aVm({ status: { conditions: [condition] } });
  assert.deepEqual(claimDeletionEvents(aWorld({ vm, deletedClaims })), []);
});
