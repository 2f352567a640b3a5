import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findOldInstance, compareSpec, decideEntryState } from '#api/machine-types/entry-state.ts';
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import { aVm, aVmi, type VmiOverrides, type VmOverrides } from '#api/machine-types/testing/sample-transition.ts';

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
  readonly vm?: VmOverrides | 'deleted';
  readonly vmi?: VmiOverrides;
  readonly want: EntryNote;
}

const restarting: EntryNote = { state: 'restarting', at: '2026-01-01T12:00:00Z' };
const required: EntryNote = { state: 'restartRequired', at: '2026-01-01T12:00:00Z' };
const skippedNote = (type: string): EntryNote => ({
  state: 'skipped',
  reason: `its machine type was changed to "${type}" in the meantime`,
});

const cases: Record<string, Case> = {
  'an unpatched VM': { want: { state: 'pending' } },
  'a stopped VM that is patched': { vm: CLEARED, want: { state: 'done' } },
  'a patched VM that has started since': { vm: { type: NEW }, vmi: NEXT, want: { state: 'done' } },
  'a target that is set': { entry: { ...STOPPED, act: 'set' }, vm: { type: NEW }, want: { state: 'done' } },
  'a type that a user changed before the job': { vm: { type: 'q35' }, want: skippedNote('q35') },
  'a target that a user cleared before the job': {
    entry: { ...STOPPED, act: 'set' },
    vm: CLEARED,
    want: skippedNote(''),
  },
  'a type that a user changed after the patch': {
    note: { state: 'updated' },
    vm: { type: OLD },
    want: { state: 'done' },
  },
  'a running VM that is patched but not marked': { entry: RAN, vm: CLEARED, vmi: {}, want: { state: 'updated' } },
  'a running VM that is marked': {
    entry: RAN,
    vm: { ...CLEARED, ...MARKED },
    vmi: {},
    want: { state: 'restartRequired' },
  },
  'a marked VM that still runs': { entry: RAN, note: required, vm: { ...CLEARED, ...MARKED }, vmi: {}, want: required },
  'a mark that a user removed': { entry: RAN, note: required, vm: CLEARED, vmi: {}, want: { state: 'updated' } },
  'a marked VM that was stopped': {
    entry: RAN,
    note: required,
    vm: { ...CLEARED, ...MARKED },
    want: { state: 'done' },
  },
  'a marked VM that was restarted': {
    entry: RAN,
    note: required,
    vm: { type: NEW, ...MARKED },
    vmi: NEXT,
    want: { state: 'done' },
  },
  'a marked VM whose guest has ended': {
    entry: RAN,
    note: required,
    vm: CLEARED,
    vmi: { phase: 'Succeeded' },
    want: { state: 'done' },
  },
  'an alias that is not marked yet': {
    entry: ALIAS,
    vm: { type: 'q35' },
    vmi: { type: 'q35', runs: OLD },
    want: { state: 'pending' },
  },
  'a restarted VM with an alias, which is unchanged': {
    entry: ALIAS,
    note: required,
    vm: { type: 'q35', ...MARKED },
    vmi: { type: 'q35', runs: OLD, metadata: { uid: 'next' } },
    want: { state: 'done' },
  },
  'a VM that started with the old type between plan and patch': {
    vm: CLEARED,
    vmi: {},
    want: { state: 'updated', vmiUid: 'vmi-uid' },
  },
  'a VM that restarted with the old type between plan and patch': {
    entry: RAN,
    vm: CLEARED,
    vmi: { metadata: { uid: 'between' } },
    want: { state: 'updated', vmiUid: 'between' },
  },
  'a VM whose instance started between plan and patch and has ended': {
    entry: RAN,
    note: { ...required, vmiUid: 'between' },
    vm: { type: NEW },
    vmi: NEXT,
    want: { state: 'done' },
  },
  'a requested restart': { entry: RAN, note: restarting, vm: CLEARED, vmi: {}, want: restarting },
  'a restart whose old instance has ended': { entry: RAN, note: restarting, vm: CLEARED, want: restarting },
  'a restart whose new instance is starting': {
    entry: RAN,
    note: restarting,
    vm: { type: NEW },
    vmi: { ...NEXT, phase: 'Scheduled' },
    want: restarting,
  },
  'a restart whose new instance runs': {
    entry: RAN,
    note: restarting,
    vm: { type: NEW },
    vmi: NEXT,
    want: { state: 'done' },
  },
  'a restarted VM to which a user gave its old type back': {
    entry: RAN,
    note: restarting,
    vm: { type: OLD },
    vmi: { metadata: { uid: 'next' } },
    want: { state: 'done' },
  },
  'a restart of a VM that runs only once': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Once' },
    want: { state: 'done' },
  },
  'a manual VM with a start request': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Manual', status: { stateChangeRequests: [{ action: 'Start' }] } },
    want: restarting,
  },
  'a manual VM that a user stopped': {
    entry: RAN,
    note: restarting,
    vm: { ...CLEARED, runStrategy: 'Manual' },
    want: { state: 'done' },
  },
  'a deleted VM': { entry: RAN, note: required, vm: 'deleted', want: { state: 'done', reason: 'the VM was deleted' } },
  'a VM that was replaced by another of the same name': {
    vm: { metadata: { uid: 'another' } },
    vmi: {},
    want: { state: 'done', reason: 'the VM was deleted' },
  },
};

for (const [name, { entry = STOPPED, note, vm, vmi, want }] of Object.entries(cases)) {
  test(`${name}: ${want.state}`, () => {
    const machine = vm === 'deleted' ? undefined : aVm(vm);
    assert.deepEqual(decideEntryState(entry, note, machine, vmi && aVmi(vmi)), want);
  });
}

test('keeps final decisions of the job and notes that are still true', () => {
  const settled: EntryNote[] = (['done', 'failed', 'skipped'] as const).map((state) => ({ state, reason: 'decided' }));
  for (const note of settled) assert.equal(decideEntryState(RAN, note, undefined, undefined), note);
  const pending: EntryNote = { state: 'pending', reason: 'the VM is being deleted', at: '2026-01-01T12:00:00Z' };
  assert.equal(decideEntryState(RAN, pending, aVm(), aVmi()), pending);
});

test('a spec must be patched only if it is as planned', () => {
  assert.equal(compareSpec(RAN, undefined, aVm()), 'asPlanned');
  assert.equal(compareSpec(RAN, { state: 'pending' }, aVm()), 'asPlanned');
  assert.equal(compareSpec(RAN, { state: 'updated' }, aVm()), 'patched');
  assert.equal(compareSpec(RAN, undefined, aVm({ type: null })), 'patched');
  assert.equal(compareSpec(ALIAS, undefined, aVm({ type: OLD })), 'patched');
});

test('an instance of another owner never has to end', () => {
  const foreign = aVmi({ metadata: { ownerReferences: [] } });
  assert.equal(findOldInstance(RAN, undefined, aVm(), foreign), undefined);
  assert.equal(findOldInstance(RAN, undefined, aVm(), aVmi())?.metadata.uid, 'vmi-uid');
});
