import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  aVm,
  aVmi,
  DELETED,
  type VmiOverrides,
  type VmOverrides,
} from '#api/machine-types/testing/sample-transition.ts';
import { findRestartRefusal, findPatchRefusal } from '#api/machine-types/find-refusal.ts';

interface Case {
  readonly vm?: VmOverrides;
  readonly vmi?: VmiOverrides;
  readonly patch?: string;
  /** Why it cannot be restarted, if that differs from why it cannot be patched. */
  readonly restart?: string;
}

const DELETING = 'the VM is being deleted';
const RESTORE = 'Cannot update VM template until restore "r" completes';

const cases: Record<string, Case> = {
  'a running VM': { vmi: {} },
  'a halted VM': { vm: { runStrategy: 'Halted' } },
  'a VM that is being deleted': { vm: { metadata: DELETED }, vmi: {}, patch: DELETING },
  'a VM that is being restored': { vm: { status: { restoreInProgress: 'r' } }, patch: RESTORE },
  'a VM with a snapshot in progress': {
    vm: { status: { snapshotInProgress: 's' } },
    vmi: {},
    restart: 'Cannot update vm running state until snapshot "s" completes',
  },
  'a VM whose claim is being deleted': {
    vm: { status: { conditions: [{ type: 'ClaimBeingDeleted', status: 'True', message: 'the disk is going' }] } },
    vmi: {},
    restart: 'the disk is going',
  },
  'a paused VM': {
    vmi: { status: { conditions: [{ type: 'Paused', status: 'True' }] } },
    restart: 'the VM is paused',
  },
  'a VM that was unpaused': { vmi: { status: { conditions: [{ type: 'Paused', status: 'False' }] } } },
  'a migrating VM': { vmi: { status: { migrationState: { migrationUid: 'm' } } }, restart: 'the VM is migrating' },
  'a VM that has migrated': { vmi: { status: { migrationState: { migrationUid: 'm', completed: true } } } },
  'a starting VM': { vmi: { phase: 'Scheduling' }, restart: 'the VM is starting: its instance is Scheduling' },
  'an unschedulable VM': {
    vm: { status: { printableStatus: 'ErrorUnschedulable' } },
    vmi: { phase: 'Scheduling' },
  },
  'a stopping VM': { vmi: { metadata: DELETED }, restart: 'the VM is stopping' },
  'a crash-looping VM': { vm: { status: { printableStatus: 'CrashLoopBackOff' } } },
  'a VM whose guest has ended': { vmi: { phase: 'Failed', metadata: DELETED } },
};

for (const [name, { vm, vmi, patch, restart = patch }] of Object.entries(cases)) {
  test(`${name}: ${restart ?? 'allowed'}`, () => {
    assert.equal(findPatchRefusal(aVm(vm)), patch);
    assert.equal(findRestartRefusal(aVm(vm), vmi && aVmi(vmi)), restart);
  });
}
