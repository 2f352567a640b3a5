/** Tests the stage during a migration and during the deletion of a claim. All other stages are in decide-snapshot.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { MigrationState } from '#api/migration/migration-state.ts';
import { stageOf } from '#controllers/snapshot/snapshot-stage.ts';
import {
  aClaim,
  aRecord,
  aSnapshot,
  aVm,
  aVmi,
  CREATED_MS,
  DELETED,
  ROOT,
} from '#controllers/snapshot/testing/snapshot-world.ts';

const MOVING: MigrationState = { migrationUid: 'm' };
const cases: Record<string, { state: MigrationState | undefined; want: string }> = {
  'is ready without a migration': { state: undefined, want: 'ready to create' },
  'waits for the end of a migration': { state: MOVING, want: 'waiting: The VirtualMachineInstance is migrating' },
  'is ready after a migration': { state: { ...MOVING, completed: true }, want: 'ready to create' },
};
for (const [name, { state, want }] of Object.entries(cases)) {
  test(name, () => {
    const vm = aVm([]);
    const vmi = aVmi('Running', { volumes: [], status: { migrationState: state } });
    const held = { vm, vmi, identity: aRecord(), volumes: [] };
    const stage = stageOf({ snapshot: aSnapshot(), vm, held, hasRestore: false, now: CREATED_MS });
    assert.equal('message' in stage ? `${stage.is}: ${stage.message}` : stage.is, want);
  });
}

for (const phase of ['Pending', 'Running'] as const) {
  test(`fails if a claim is being deleted and the instance is ${phase}`, () => {
    const vm = aVm([ROOT]);
    const claim = aClaim('root-claim', 'Bound', DELETED);
    const volumes = [{ volume: ROOT, claim, snapshotClass: 'local' }];
    const held = { vm, vmi: aVmi(phase, { volumes: [ROOT] }), volumes };
    assert.deepEqual(stageOf({ snapshot: aSnapshot(), vm, held, hasRestore: false, now: CREATED_MS }), {
      is: 'failed',
      reason: 'ClaimBeingDeleted',
      message: 'PersistentVolumeClaim "root-claim" is being deleted',
    });
  });
}
