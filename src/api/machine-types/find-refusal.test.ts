import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm, aVmi, DELETED, type VmiOverrides, type VmOverrides } from '#api/machine-types/transition.fixture.ts';
import { obstacle, patchObstacle } from '#api/machine-types/why-not.ts';

interface Case {
  readonly vm?: VmOverrides;
  readonly vmi?: VmiOverrides;
  readonly patch?: string;
  /** Where it is another than of the patch. */
  readonly restart?: string;
}

const DELETING = 'the VM is being deleted';
const RESTORE = 'Cannot update VM template until restore "r" completes';

const cases: Record<string, Case> = {
  'a VM that runs': { vmi: {} },
  'a halted one': { vm: { runStrategy: 'Halted' } },
  'one that is being deleted': { vm: { metadata: DELETED }, vmi: {}, patch: DELETING },
  'one that is being restored': { vm: { status: { restoreInProgress: 'r' } }, patch: RESTORE },
  'one of which a snapshot is taken': {
    vm: { status: { snapshotInProgress: 's' } },
    vmi: {},
    restart: 'Cannot update vm running state until snapshot "s" completes',
  },
  'a paused one': {
    vmi: { status: { conditions: [{ type: 'Paused', status: 'True' }] } },
    restart: 'the VM is paused',
  },
  'one that has been unpaused': { vmi: { status: { conditions: [{ type: 'Paused', status: 'False' }] } } },
  'one that migrates': { vmi: { status: { migrationState: { migrationUid: 'm' } } }, restart: 'the VM is migrating' },
  'one that has migrated': { vmi: { status: { migrationState: { migrationUid: 'm', completed: true } } } },
  'one that starts': { vmi: { phase: 'Scheduling' }, restart: 'the VM is starting: its instance is Scheduling' },
  'one that no node takes': {
    vm: { status: { printableStatus: 'ErrorUnschedulable' } },
    vmi: { phase: 'Scheduling' },
  },
  'one that stops': { vmi: { metadata: DELETED }, restart: 'the VM is stopping' },
  'one that crashes again and again': { vm: { status: { printableStatus: 'CrashLoopBackOff' } } },
  'one whose guest has ended': { vmi: { phase: 'Failed', metadata: DELETED } },
};

for (const [name, { vm, vmi, patch, restart = patch }] of Object.entries(cases)) {
  test(`${name}: ${restart ?? 'nothing'} is in the way`, () => {
    assert.equal(patchObstacle(aVm(vm)), patch);
    assert.equal(obstacle(aVm(vm), vmi && aVmi(vmi)), restart);
  });
}
