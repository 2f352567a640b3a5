import assert from 'node:assert/strict';
import { test } from 'node:test';
import { aVm, aVmi } from '#api/validation/testing/valid-objects.ts';
import { judgeStart, judgeStop, type PowerJudge, type VmView } from '#cli/wait/power-state.ts';
import type { WaitState } from '#cli/wait/wait-until.ts';

const vm = (status: object, metadata: object = {}) => aVm({ status, metadata }) as NonNullable<VmView['vm']>;
const vmi = (uid: string, status: object) => aVmi({ metadata: { uid }, status }) as NonNullable<VmView['vmi']>;
const running = (uid: string, more: object = {}) => vmi(uid, { phase: 'Running', nodeName: 'node-1', ...more });

const STOPPED: VmView = { vm: vm({ printableStatus: 'Stopped' }), vmi: undefined };
const RUNNING: VmView = { vm: vm({ printableStatus: 'Running' }), vmi: running('old') };
const failed = (uid: string) =>
  vm({ printableStatus: 'CrashLoopBackOff', startFailure: { lastFailedVMIUID: uid, message: 'QEMU exited' } });
const unschedulable = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: 'no node fits' };
const paused = { conditions: [{ type: 'Paused', status: 'True' }] };

const start = judgeStart(false);
const cases: Record<string, { judge: PowerJudge; before?: VmView; now: VmView; want: WaitState }> = {
  'a start waits for the instance': { judge: start, now: STOPPED, want: { waiting: 'VM db: Stopped' } },
  'a start shows why no node is found': {
    judge: start,
    now: { vm: vm({ printableStatus: 'ErrorUnschedulable' }), vmi: vmi('new', { conditions: [unschedulable] }) },
    want: { waiting: 'VM db: ErrorUnschedulable (no node fits)' },
  },
  'a start shows why no instance is created': {
    judge: start,
    now: {
      vm: vm({ printableStatus: 'Stopped', conditions: [{ type: 'Failure', status: 'True', message: 'no record' }] }),
      vmi: undefined,
    },
    want: { waiting: 'VM db: Stopped (no record)' },
  },
  'a start ends with a running guest': {
    judge: start,
    now: { ...RUNNING, vmi: running('new') },
    want: { done: 'VM db is running on node-1' },
  },
  'a paused start waits for the pause': {
    judge: judgeStart(true),
    now: { ...RUNNING, vmi: running('new') },
    want: { waiting: 'VM db: Running' },
  },
  'a paused start ends with a paused guest': {
    judge: judgeStart(true),
    now: { ...RUNNING, vmi: running('new', paused) },
    want: { done: 'VM db is paused on node-1' },
  },
  'a start fails with its instance': {
    judge: start,
    now: { vm: failed('new'), vmi: undefined },
    want: { failed: 'Cannot start VM db: QEMU exited; it is tried again, see kubectl describe vm db' },
  },
  'a restart ignores the failure of an earlier start': {
    judge: start,
    before: { vm: failed('old'), vmi: undefined },
    now: { vm: failed('old'), vmi: undefined },
    want: { waiting: 'VM db: CrashLoopBackOff' },
  },
  'a start fails if the guest shuts down': {
    judge: start,
    now: { ...STOPPED, vmi: vmi('new', { phase: 'Succeeded' }) },
    want: { failed: 'Cannot confirm that VM db is running: its guest has shut down; see kubectl describe vmi db' },
  },
  'a start fails if the VM is deleted': {
    judge: start,
    now: { vm: vm({}, { deletionTimestamp: '2026-01-01T00:00:00Z' }), vmi: undefined },
    want: { failed: 'Cannot start VM db: it was deleted' },
  },
  'a restart waits for another instance': {
    judge: start,
    before: RUNNING,
    now: RUNNING,
    want: { waiting: 'VM db: Running' },
  },
  'a stop waits for the guest': {
    judge: judgeStop,
    before: RUNNING,
    now: { vm: vm({ printableStatus: 'Stopping' }), vmi: running('old') },
    want: { waiting: 'VM db: Stopping' },
  },
  'a stop waits until the VM reports it': {
    judge: judgeStop,
    before: RUNNING,
    now: { vm: vm({ printableStatus: 'Stopping' }), vmi: undefined },
    want: { waiting: 'VM db: Stopping' },
  },
  'a stop ends without an instance': {
    judge: judgeStop,
    before: RUNNING,
    now: STOPPED,
    want: { done: 'VM db is stopped' },
  },
  'a stop ends with an instance that has ended': {
    judge: judgeStop,
    before: RUNNING,
    now: { ...STOPPED, vmi: vmi('old', { phase: 'Succeeded' }) },
    want: { done: 'VM db is stopped' },
  },
  'a stop fails if the VM is started again': {
    judge: judgeStop,
    before: RUNNING,
    now: { ...RUNNING, vmi: running('new') },
    want: { failed: 'Cannot confirm that VM db is stopped: it was stopped and has been started again' },
  },
  'a stop ends with the VM': {
    judge: judgeStop,
    before: RUNNING,
    now: { vm: undefined, vmi: undefined },
    want: { done: 'VM db is stopped; it was deleted meanwhile' },
  },
};
for (const [title, { judge, before = STOPPED, now, want }] of Object.entries(cases)) {
  test(title, () => assert.deepEqual(judge('db', before, now), want));
}
