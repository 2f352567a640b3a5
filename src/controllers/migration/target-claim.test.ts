/**
 * Tests that every combination of modes gets a new target claim, as seed 001 requires (docs/seeds.md). KubeVirt reuses
 * the source claim in the cases M3 and M4 of its own tests.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { findStateClaim, stateOwnerOf } from '#api/storage/persistent-state.ts';
import {
  aMigration,
  aStateClaim,
  aVmi,
  aWorld,
  VM_UID,
  VMI_UID,
} from '#controllers/migration/testing/migration-world.ts';
import { buildTargetClaim, isTargetClaimOf, targetClaimName } from '#controllers/migration/target-claim.ts';
import type { AccessMode, PersistentVolumeClaim, VolumeMode } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

const asStored = (claim: PersistentVolumeClaim) =>
  ({ ...claim, metadata: { ...aStateClaim('target').metadata, ...claim.metadata } }) as Stored<PersistentVolumeClaim>;

describe('the target claim is like the source claim', () => {
  const volumeModes: VolumeMode[] = ['Filesystem', 'Block'];
  const accessModes: AccessMode[] = ['ReadWriteOnce', 'ReadWriteMany'];
  for (const volumeMode of volumeModes) {
    for (const accessMode of accessModes) {
      test(`${accessMode} ${volumeMode}`, () => {
        const source = aStateClaim('source');
        const spec = { ...source.spec, volumeMode, accessModes: [accessMode], volumeName: 'pv', dataSource: {} };
        const claim = buildTargetClaim(aVmi(), { ...source, spec }, { migration: aMigration(), name: 'new' });
        assert.deepEqual(claim.spec, { ...source.spec, volumeMode, accessModes: [accessMode] });
        // No VM finds it as its state before the migration is decided.
        assert.equal(findStateClaim([asStored(claim)], stateOwnerOf(aVmi())), undefined);
        assert.equal(isTargetClaimOf(asStored(claim), aMigration()), true);
      });
    }
  }
});

test('the owner is the VM, or an instance without a VM', () => {
  const options = { migration: aMigration(), name: 'new' };
  const owner = (vmi: ReturnType<typeof aVmi>) =>
    buildTargetClaim(vmi, aStateClaim('source'), options).metadata.ownerReferences?.map(({ uid }) => uid);
  assert.deepEqual(owner(aVmi()), [VM_UID]);
  assert.deepEqual(owner(aVmi({}, {}, { ownerReferences: undefined })), [VMI_UID]);
});

test('skips a name that is taken', () => {
  const first = targetClaimName(aVmi(), aWorld());
  const second = targetClaimName(aVmi(), aWorld({ isClaimNameTaken: (name) => name === first }));
  assert.match(first, /^persistent-state-for-db-[0-9a-f]{5}$/);
  assert.notEqual(second, first);
});

test('the label has the uid of a migration whose name is too long', () => {
  const migration = aMigration(undefined, { name: 'x'.repeat(200) });
  const claim = buildTargetClaim(aVmi(), aStateClaim('source'), { migration, name: 'new' });
  assert.equal(claim.metadata.labels?.['kubevirt.io/migrationName'], migration.metadata.uid);
});
