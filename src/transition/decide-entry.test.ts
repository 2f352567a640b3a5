import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EntryNote, PlanEntry } from '#api/machine-types/plan.ts';
import type { RestartMark } from '#api/machine-types/restart-mark.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { RunStrategy, VmStatus } from '#api/virtual-machine/schema.ts';
import type { HistoryEntry, IdentityChange, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { COMPARE_LIMIT_MS, decideEntry, RESTART_LIMIT_MS, type EntryWorld } from '#transition/decide-entry.ts';

const NOW = Date.parse('2026-01-01T12:00:00Z');
const AT = timestamp(NOW);
const [OLD, NEW] = ['pc-q35-rhel8.2.0', 'pc-q35-7.2'];
const meta = { name: 'db', namespace: 'ns', resourceVersion: '1', creationTimestamp: AT };

interface VmMore {
  readonly type?: string | null;
  readonly runStrategy?: RunStrategy;
  readonly status?: VmStatus;
  readonly metadata?: Partial<ObjectMeta>;
  readonly graceSeconds?: number;
}

/** Returns a VM after the Job has cleared its type. */
function aVm(more: VmMore = {}): Stored<VirtualMachine> {
  const { type, runStrategy = 'Always', status = {}, metadata = {}, graceSeconds } = more;
  const grace = graceSeconds === undefined ? {} : { terminationGracePeriodSeconds: graceSeconds };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...meta, uid: 'vm', ...metadata },
    spec: { runStrategy, template: { spec: { ...grace, domain: { machine: type === undefined ? {} : { type } } } } },
    status,
  } as Stored<VirtualMachine>;
}

/** Returns an instance; `new` is one that was created after the patch. */
function aVmi(uid: 'old' | 'early' | 'new' = 'old', status: VmiStatus = {}, more: Partial<ObjectMeta> = {}) {
  const type = uid === 'new' ? 'q35' : OLD;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'vm', controller: true };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...meta, uid, ownerReferences: [owner], ...more },
    spec: { domain: { machine: { type } } },
    status: { phase: 'Running', machine: { type: uid === 'new' ? NEW : OLD }, deviceHash: 'h', ...status },
  } as Stored<VirtualMachineInstance>;
}

function aRecord(instance: string, ...history: HistoryEntry[]): Stored<VirtualMachineIdentity> {
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { ...meta, uid: 'record' },
    spec: {},
    status: { instance, deviceHash: 'h', history },
  };
}

const entry: PlanEntry = { namespace: 'ns', name: 'db', uid: 'vm', vmiUid: 'old', act: 'clear', from: OLD, to: 'q35' };
const stopped: PlanEntry = { namespace: 'ns', name: 'db', uid: 'vm', act: 'clear', from: OLD, to: 'q35' };
const UPDATED: EntryNote = { state: 'updated', at: AT };
const RESTARTING: EntryNote = { state: 'restarting', at: AT };
const REQUIRED: EntryNote = { state: 'restartRequired', at: AT };
const began = (uid: string, ...changes: IdentityChange[]): HistoryEntry => ({ instance: uid, changes });
const MOVED = { field: 'devices.disk-a.address', from: { type: 'isa', irq: '1' }, to: { type: 'isa', irq: '2' } };

interface Case extends Partial<EntryWorld> {
  /** `state: reason + step`. */
  readonly want: string;
}

const cases: Record<string, Case> = {
  'the type is changed first': { vm: aVm({ type: OLD }), want: 'updated + patchType' },
  'a deleted VM is done': { vm: undefined, want: 'done: the VM was deleted' },
  'another VM of the same name is not in the plan': {
    vm: aVm({ metadata: { uid: 'other' } }),
    want: 'done: the VM was deleted',
  },
  'a VM under deletion is waited for': {
    vm: aVm({ type: OLD, metadata: { deletionTimestamp: AT } }),
    want: 'pending: the VM is being deleted',
  },
  'nothing is changed during a restore': {
    vm: aVm({ type: OLD, status: { restoreInProgress: 'back' } }),
    want: 'pending: Cannot update VM template until restore "back" completes',
  },
  'a VM that was patched before a kill is not patched again': {
    vm: aVm(),
    want: 'restartRequired + mark true for old',
  },
  'a VM whose type a user changed meanwhile is skipped': {
    restartNow: true,
    vm: aVm({ type: NEW }),
    want: `skipped: its machine type was changed to "${NEW}" in the meantime`,
  },
  'a marked VM is followed although its type was changed': {
    vm: aVm({ type: NEW, status: { machineTypeRestartRequired: true } }),
    vmi: undefined,
    want: 'pending + mark false',
  },
  'a VM that may start with its old type is waited for': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 2 } }),
    vmi: undefined,
    want: 'updated',
  },
  'a VM whose controller has seen the patch is done': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 3 } }),
    vmi: undefined,
    want: 'done',
  },
  'a restarted VM whose controller has not seen the patch is restarting': {
    restartNow: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 2, printableStatus: 'Starting' } }),
    vmi: undefined,
    want: 'restarting: the VM is Starting',
  },
  'a halted VM whose controller has not seen the patch is done': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ runStrategy: 'Halted', metadata: { generation: 3 }, status: { desiredGeneration: 2 } }),
    vmi: undefined,
    want: 'done',
  },
  'an old type that was set again after the update is left alone': {
    vm: aVm({ type: OLD }),
    note: UPDATED,
    want: 'restartRequired + mark true for old',
  },
  'a guest that already has the new type is left alone': {
    restartNow: true,
    entry: { ...entry, gives: NEW },
    note: UPDATED,
    vmi: aVmi('old', { machine: { type: NEW } }),
    want: `done: the guest already runs on ${NEW}`,
  },
  'a stopped VM is done': { entry: stopped, vmi: undefined, want: 'done' },
  'an old mark of a stopped VM is removed': {
    entry: stopped,
    vmi: undefined,
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    want: 'pending + mark false',
  },
  'a VM that started before its patch must be restarted': {
    entry: stopped,
    vmi: aVmi('early'),
    want: 'restartRequired of early + mark true for early',
  },
  'a VM that started after its patch is done': { entry: stopped, vmi: aVmi('new'), want: 'done' },
  'a marked VM waits for its users': {
    vm: aVm({ status: { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'old' } }),
    note: REQUIRED,
    want: 'restartRequired',
  },
  'a mark without an instance gets one': {
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    note: REQUIRED,
    want: 'restartRequired + mark true for old',
  },
  'a mark of an earlier instance is set for the current one': {
    vm: aVm({ status: { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'earlier' } }),
    note: REQUIRED,
    want: 'restartRequired + mark true for old',
  },
  'the mark is removed when its instance is gone': {
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    vmi: aVmi('new'),
    note: REQUIRED,
    want: 'restartRequired + mark false',
  },
  'a VM that a user stopped is done': {
    vm: aVm({ runStrategy: 'Halted' }),
    vmi: undefined,
    note: REQUIRED,
    want: 'done: the VM is stopped',
  },
  'a VM whose instance has ended and that does not start again is done': {
    vm: aVm({ runStrategy: 'Manual', status: { printableStatus: 'Stopped' } }),
    vmi: aVmi('old', { phase: 'Succeeded' }),
    note: REQUIRED,
    want: 'done: the VM is stopped',
  },
  'a running VM is restarted if restarts are enabled': {
    restartNow: true,
    note: UPDATED,
    want: 'restarting + restart',
  },
  'a VM with the strategy Once is stopped': {
    restartNow: true,
    note: UPDATED,
    vm: aVm({ runStrategy: 'Once' }),
    want: 'restarting + stop',
  },
  'a paused VM waits': {
    restartNow: true,
    note: UPDATED,
    vmi: aVmi('old', { conditions: [{ type: 'Paused', status: 'True' }] }),
    want: 'updated: the VM is paused',
  },
  'a starting VM waits': {
    restartNow: true,
    note: UPDATED,
    vmi: aVmi('old', { phase: 'Scheduled' }),
    want: 'updated: the VM is starting: its instance is Scheduled',
  },
  'an unschedulable VM is restarted': {
    restartNow: true,
    note: UPDATED,
    vm: aVm({ status: { printableStatus: 'ErrorUnschedulable' } }),
    vmi: aVmi('old', { phase: 'Scheduling' }),
    want: 'restarting + restart',
  },
  'a restart that was requested before a kill is not requested again': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { stateChangeRequests: [{ action: 'Stop', uid: 'old' }, { action: 'Start' }] } }),
    want: 'restarting: the VM is stopping',
  },
  'an instance under deletion is not stopped again': {
    restartNow: true,
    note: RESTARTING,
    vmi: aVmi('old', {}, { deletionTimestamp: AT }),
    want: 'restarting: the VM is stopping',
  },
  'a restart that was noted but not requested is requested': {
    restartNow: true,
    note: RESTARTING,
    want: 'restarting + restart',
  },
  'a new instance is never restarted': {
    restartNow: true,
    note: RESTARTING,
    vmi: aVmi('new'),
    record: aRecord('new'),
    want: 'done',
  },
  'a restarted VM is waited for until it runs': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { printableStatus: 'Starting' } }),
    vmi: aVmi('new', { phase: 'Scheduling' }),
    want: 'restarting: the VM is Starting',
  },
  'a restarted VM is waited for between two instances': {
    restartNow: true,
    note: RESTARTING,
    vmi: undefined,
    want: 'restarting',
  },
  'a manual VM with a pending start is waited for': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ runStrategy: 'Manual', status: { stateChangeRequests: [{ action: 'Start' }] } }),
    vmi: undefined,
    want: 'restarting',
  },
  'a restarted VM that cannot start has failed': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { startFailure: { consecutiveFailCount: 3, message: 'no disk' } } }),
    vmi: undefined,
    want: 'failed: cannot start again: no disk',
  },
  'a failed restart by a user is not a failure of the Job': {
    vm: aVm({ status: { startFailure: { consecutiveFailCount: 3, message: 'no disk' } } }),
    vmi: undefined,
    note: REQUIRED,
    want: 'done: cannot start again: no disk',
  },
  'a requested restart is not requested again before the cache shows it': {
    restartNow: true,
    isRestartRequested: true,
    note: RESTARTING,
    want: 'restarting: the VM is stopping',
  },
  'a restart that cannot be requested gives up its slot': {
    restartNow: true,
    note: RESTARTING,
    vmi: aVmi('old', { conditions: [{ type: 'Paused', status: 'True' }] }),
    want: 'updated: the VM is paused',
  },
  'a VM that does not stop has failed': {
    restartNow: true,
    isRestartRequested: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'failed: not running 15 minutes after the restart was requested: the VM is stopping',
  },
  'a guest with a longer grace period gets more time': {
    restartNow: true,
    isRestartRequested: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    vm: aVm({ graceSeconds: 60 }),
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'restarting: the VM is stopping',
  },
  'a restart that was noted long ago is still requested': {
    restartNow: true,
    note: RESTARTING,
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'restarting + restart',
  },
  'unchanged devices are not reported': {
    note: UPDATED,
    vmi: aVmi('new'),
    record: aRecord('new', began('new', { field: 'machine.type', from: OLD, to: NEW }), began('old', MOVED)),
    want: 'done',
  },
  'changed devices are reported': {
    note: UPDATED,
    vmi: aVmi('new'),
    record: aRecord('new', began('new', MOVED)),
    want: 'done: the guest sees other devices: disk-a moved from isa irq=1 to isa irq=2',
  },
  'the comparison waits for the record': { note: UPDATED, vmi: aVmi('new'), record: aRecord('old'), want: 'updated' },
  'the comparison does not wait for ever': {
    note: UPDATED,
    vmi: aVmi('new'),
    nowMs: NOW + COMPARE_LIMIT_MS,
    want: 'done: its devices could not be compared: the identity record has no entry for this start',
  },
  'an alias that still resolves to the old type is reported': {
    entry: { ...entry, act: 'mark' },
    note: REQUIRED,
    vmi: aVmi('new', { machine: { type: OLD } }),
    record: aRecord('new'),
    want: `done: it still runs on ${OLD}`,
  },
  'a VM with an alias is marked and not patched': {
    entry: { ...entry, act: 'mark' },
    want: 'restartRequired + mark true for old',
  },
  'a failed VM stays failed': { note: { state: 'failed', reason: 'no' }, vm: aVm({ type: OLD }), want: 'failed: no' },
};

function aWorld(world: Partial<EntryWorld>): EntryWorld {
  const note: EntryNote = { state: 'pending' };
  return {
    entry,
    note,
    vm: aVm(),
    vmi: aVmi(),
    record: undefined,
    restartNow: false,
    isRestartRequested: false,
    nowMs: NOW,
    ...world,
  };
}

/** `true for UID`, or `false`. */
function markText({ machineTypeRestartRequired: required, machineTypeRestartInstanceUID: uid }: RestartMark): string {
  return uid === undefined ? String(required) : `${required} for ${uid}`;
}

function describeDecision(world: EntryWorld): string {
  const { note, step } = decideEntry(world);
  const act = step?.do === 'mark' ? `mark ${markText(step.mark)}` : step?.do === 'restart' ? step.verb : step?.do;
  const state = note.vmiUid === undefined ? note.state : `${note.state} of ${note.vmiUid}`;
  const noted = note.reason === undefined ? state : `${state}: ${note.reason}`;
  return act === undefined ? noted : `${noted} + ${act}`;
}

for (const [name, { want, ...world }] of Object.entries(cases)) {
  test(name, () => {
    assert.equal(describeDecision(aWorld(world)), want);
    const decided = decideEntry(aWorld(world));
    const again = decideEntry(aWorld({ ...world, note: decided.note }));
    if (decided.step === undefined) assert.equal(again.note, decided.note, 'the same world changes nothing');
  });
}

test('a decision that waits says when to decide again', () => {
  const leftMs = (world: Partial<EntryWorld>) => decideEntry(aWorld(world)).recheckAfterMs;
  const later = { nowMs: NOW + 1000 };
  assert.equal(
    leftMs({ ...later, restartNow: true, isRestartRequested: true, note: RESTARTING }),
    RESTART_LIMIT_MS - 1000,
  );
  assert.equal(leftMs({ ...later, note: UPDATED, vmi: aVmi('new') }), COMPARE_LIMIT_MS - 1000);
  assert.equal(leftMs({ ...later, note: UPDATED, vmi: aVmi('new', { phase: 'Scheduled' }) }), RESTART_LIMIT_MS - 1000);
  assert.equal(leftMs({ ...later, note: REQUIRED }), undefined);
});

test('a note keeps the time of its state', () => {
  const note = { ...RESTARTING, reason: 'x' };
  const { at } = decideEntry(aWorld({ restartNow: true, note, nowMs: NOW + 5000 })).note;
  assert.equal(at, AT);
});
