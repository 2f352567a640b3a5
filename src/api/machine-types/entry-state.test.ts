import assert from 'node:assert/strict';
import { test } from 'node:test';
import { oldInstance, specState, stateOf } from '#api/machine-types/entry-state.ts';
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import { aVm, aVmi, type VmiOverrides, type VmOverrides } from '#api/machine-types/transition.fixture.ts';

const OLD = 'pc-q35-rhel8.2.0';
const NEW = 'pc-q35-rhel9.2.0';
const STOPPED: PlanEntry = { namespace: 'ns', name: 'db', uid: 'vm-uid', act: 'clear', from: OLD, to: NEW };
const RAN: PlanEntry = { ...STOPPED, vmiUid: 'vmi-uid' };
const ALIAS: PlanEntry = { namespace: 'ns', name: 'db', uid: 'vm-uid', vmiUid: 'vmi-uid', act: 'mark', from: OLD };

const CLEARED = { type: '' };
const MARKED = { status: { machineTypeRestartRequired: true } };
const NEXT = { type: NEW, metadata: { uid: 'next' } };

interface Case {
  readonly entry?: PlanEntry;
  readonly note?: EntryNote;
  readonly vm?: VmOverrides | 'gone';
  readonly vmi?: VmiOverrides;
  readonly want: EntryNote;
}

const restarting: EntryNote = { state: 'restarting', at: '2026-01-01T12:00:00Z' };
const required: EntryNote = { state: 'restartRequired', at: '2026-01-01T12:00:00Z' };
const skipped = (type: string): EntryNote => ({
  state: 'skipped',
  reason: `its machine type was changed to "${type}" in the meantime`,
});

const cases: Record<string, Case> = {
  'nothing is done yet': { want: { state: 'pending' } },
  'a stopped VM is done once it is patched': { vm: CLEARED, want: { state: 'done' } },
  'so is one that has started since': { vm: { type: NEW }, vmi: NEXT, want: { state: 'done' } },
  'a target that is set': { entry: { ...STOPPED, act: 'set' }, vm: { type: NEW }, want: { state: 'done' } },
  'a type that somebody changed before the job came': { vm: { type: 'q35' }, want: skipped('q35') },
  'a target that somebody cleared before': { entry: { ...STOPPED, act: 'set' }, vm: CLEARED, want: skipped('') },
  'what was changed after the patch is not the job’s': {
    note: { state: 'updated' },
    vm: { type: OLD },
    want: { state: 'done' },
  },
  'a running one is patched, not marked': { entry: RAN, vm: CLEARED, vmi: {}, want: { state: 'updated' } },
  'a running one is marked': {
    entry: RAN,
    vm: { ...CLEARED, ...MARKED },
    vmi: {},
    want: { state: 'restartRequired' },
  },
  'a marked one still runs': { entry: RAN, note: required, vm: { ...CLEARED, ...MARKED }, vmi: {}, want: required },
  'a mark that somebody took off': { entry: RAN, note: required, vm: CLEARED, vmi: {}, want: { state: 'updated' } },
  'a marked one was stopped': { entry: RAN, note: required, vm: { ...CLEARED, ...MARKED }, want: { state: 'done' } },
  'a marked one was restarted': {
    entry: RAN,
    note: required,
    vm: { type: NEW, ...MARKED },
    vmi: NEXT,
    want: { state: 'done' },
  },
  'a guest that ended counts as stopped': {
    entry: RAN,
    note: required,
    vm: CLEARED,
    vmi: { phase: 'Succeeded' },
    want: { state: 'done' },
  },
  'an alias that is to be marked': {
    entry: ALIAS,
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: OLD },
    want: { state: 'pending' },
  },
  'an alias that was restarted has the same word as before': {
    entry: ALIAS,
    note: required,
    vm: { type: 'q35', ...MARKED },
    vmi: { type: 'q35', runs: OLD, metadata: { uid: 'next' } },
    want: { state: 'done' },
  },
  'it started between the plan and the patch, with the old type': {
    vm: CLEARED,
    vmi: {},
    want: { state: 'updated', vmiUid: 'vmi-uid' },
  },
  'it restarted between the plan and the patch, with the old type': {
    entry: RAN,
    vm: CLEARED,
    vmi: { metadata: { uid: 'between' } },
    want: { state: 'updated', vmiUid: 'between' },
  },
  'the one that began between has gone': {
    entry: RAN,
    note: { ...required, vmiUid: 'between' },
    vm: { type: NEW },
    vmi: NEXT,
    want: { state: 'done' },
  },
  'a restart that is asked for': { entry: RAN, note: restarting, vm: CLEARED, vmi: {}, want: restarting },
  'the old one has gone, and a new one is to come': { entry: RAN, note: restarting, vm: CLEARED, want: restarting },
  'a new one comes up': {
    entry: RAN,
    note: restarting,
    vm: { type: NEW },
    vmi: { ...NEXT, phase: 'Scheduled' },
    want: restarting,
  },
  'a new one is up': { entry: RAN, note: restarting, vm: { type: NEW }, vmi: NEXT, want: { state: 'done' } },
  'a restarted one is never old again, though somebody gave it its type back': {
    entry: RAN,
    note: restarting,
    vm: { type: OLD },
    vmi: { metadata: { uid: 'next' } },
    want: { state: 'done' },
  },
  'it was to run only once': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Once' },
    want: { state: 'done' },
  },
  'a manual one that is asked to start': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Manual', status: { stateChangeRequests: [{ action: 'Start' }] } },
    want: restarting,
  },
  'a manual one that somebody stopped': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Manual' },
    want: { state: 'done' },
  },
  'the VM is gone': { entry: RAN, note: required, vm: 'gone', want: { state: 'done', reason: 'the VM was deleted' } },
  'another VM has its name': {
    vm: { metadata: { uid: 'another' } },
    vmi: {},
    want: { state: 'done', reason: 'the VM was deleted' },
  },
};

for (const [name, { entry = STOPPED, note, vm, vmi, want }] of Object.entries(cases)) {
  test(`${name}: ${want.state}`, () => {
    const machine = vm === 'gone' ? undefined : aVm(vm);
    assert.deepEqual(stateOf(entry, note, machine, vmi && aVmi(vmi)), want);
  });
}

test('what the job has decided stays, and so does a note that still holds', () => {
  const settled: EntryNote[] = (['done', 'failed', 'skipped'] as const).map((state) => ({ state, reason: 'said so' }));
  for (const note of settled) assert.equal(stateOf(RAN, note, undefined, undefined), note);
  const pending: EntryNote = { state: 'pending', reason: 'the VM is being deleted', at: '2026-01-01T12:00:00Z' };
  assert.equal(stateOf(RAN, pending, aVm(), aVmi()), pending);
});

test('only what is as planned is still to be patched', () => {
  assert.equal(specState(RAN, undefined, aVm()), 'asPlanned');
  assert.equal(specState(RAN, { state: 'pending' }, aVm()), 'asPlanned');
  assert.equal(specState(RAN, { state: 'updated' }, aVm()), 'patched');
  assert.equal(specState(RAN, undefined, aVm({ type: null })), 'patched');
  assert.equal(specState(ALIAS, undefined, aVm({ type: OLD })), 'patched');
});

test('an instance of somebody else never has to go', () => {
  const stranger = aVmi({ metadata: { ownerReferences: [] } });
  assert.equal(oldInstance(RAN, undefined, aVm(), stranger), undefined);
  assert.equal(oldInstance(RAN, undefined, aVm(), aVmi())?.metadata.uid, 'vmi-uid');
});
