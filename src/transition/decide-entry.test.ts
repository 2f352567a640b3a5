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

/** As the Job leaves it: without a type. */
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

/** `new` is one that was made after the patch. */
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
  /** `state: reason`, then what is done about it. */
  readonly want: string;
}

const cases: Record<string, Case> = {
  'the type is changed first': { vm: aVm({ type: OLD }), want: 'updated + patchType' },
  'a VM that is gone is done': { vm: undefined, want: 'done: the VM was deleted' },
  'another VM of the name is not ours': { vm: aVm({ metadata: { uid: 'other' } }), want: 'done: the VM was deleted' },
  'one that is being deleted is waited for': {
    vm: aVm({ type: OLD, metadata: { deletionTimestamp: AT } }),
    want: 'pending: the VM is being deleted',
  },
  'nothing is changed during a restore': {
    vm: aVm({ type: OLD, status: { restoreInProgress: 'back' } }),
    want: 'pending: Cannot update VM template until restore "back" completes',
  },
  'what was patched before a kill is not patched again': { vm: aVm(), want: 'restartRequired + mark true for old' },
  'a type that somebody changed meanwhile is theirs, and so is the restart': {
    restartNow: true,
    vm: aVm({ type: NEW }),
    want: `skipped: its machine type was changed to "${NEW}" in the meantime`,
  },
  'but one that we have marked is followed to its end': {
    vm: aVm({ type: NEW, status: { machineTypeRestartRequired: true } }),
    vmi: undefined,
    want: 'pending + mark false',
  },
  'one that is about to start as before is waited for': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 2 } }),
    vmi: undefined,
    want: 'updated',
  },
  'one whose controller has seen the patch is not': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 3 } }),
    vmi: undefined,
    want: 'done',
  },
  'nor one that was restarted': {
    restartNow: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    vm: aVm({ metadata: { generation: 3 }, status: { desiredGeneration: 2, printableStatus: 'Starting' } }),
    vmi: undefined,
    want: 'restarting: the VM is Starting',
  },
  'nor one that is not to run': {
    entry: stopped,
    note: UPDATED,
    vm: aVm({ runStrategy: 'Halted', metadata: { generation: 3 }, status: { desiredGeneration: 2 } }),
    vmi: undefined,
    want: 'done',
  },
  'a type that came back after it was noted is left alone': {
    vm: aVm({ type: OLD }),
    note: UPDATED,
    want: 'restartRequired + mark true for old',
  },
  'a guest that has the new type already is left alone': {
    restartNow: true,
    entry: { ...entry, gives: NEW },
    note: UPDATED,
    vmi: aVmi('old', { machine: { type: NEW } }),
    want: `done: its guest runs on ${NEW} already`,
  },
  'a stopped VM is done': { entry: stopped, vmi: undefined, want: 'done' },
  'a mark that is left from before goes': {
    entry: stopped,
    vmi: undefined,
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    want: 'pending + mark false',
  },
  'one that started before its patch has to be restarted, too': {
    entry: stopped,
    vmi: aVmi('early'),
    want: 'restartRequired of early + mark true for early',
  },
  'one that started after its patch has not': { entry: stopped, vmi: aVmi('new'), want: 'done' },
  'a marked VM is left to its people': {
    vm: aVm({ status: { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'old' } }),
    note: REQUIRED,
    want: 'restartRequired',
  },
  'a mark of an older version gets its instance': {
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    note: REQUIRED,
    want: 'restartRequired + mark true for old',
  },
  'a mark of an earlier instance becomes that of this one': {
    vm: aVm({ status: { machineTypeRestartRequired: true, machineTypeRestartInstanceUID: 'earlier' } }),
    note: REQUIRED,
    want: 'restartRequired + mark true for old',
  },
  'the mark goes with the instance': {
    vm: aVm({ status: { machineTypeRestartRequired: true } }),
    vmi: aVmi('new'),
    note: REQUIRED,
    want: 'restartRequired + mark false',
  },
  'one that people stopped is done': {
    vm: aVm({ runStrategy: 'Halted' }),
    vmi: undefined,
    note: REQUIRED,
    want: 'done: the VM is stopped',
  },
  'one whose instance came to its end is done, unless it comes up again': {
    vm: aVm({ runStrategy: 'Manual', status: { printableStatus: 'Stopped' } }),
    vmi: aVmi('old', { phase: 'Succeeded' }),
    note: REQUIRED,
    want: 'done: the VM is stopped',
  },
  'with restarts it is restarted': { restartNow: true, note: UPDATED, want: 'restarting + restart' },
  'one that runs once is stopped': {
    restartNow: true,
    note: UPDATED,
    vm: aVm({ runStrategy: 'Once' }),
    want: 'restarting + stop',
  },
  'a paused one waits': {
    restartNow: true,
    note: UPDATED,
    vmi: aVmi('old', { conditions: [{ type: 'Paused', status: 'True' }] }),
    want: 'updated: the VM is paused',
  },
  'one that starts waits': {
    restartNow: true,
    note: UPDATED,
    vmi: aVmi('old', { phase: 'Scheduled' }),
    want: 'updated: the VM is starting: its instance is Scheduled',
  },
  'one that finds no node does not': {
    restartNow: true,
    note: UPDATED,
    vm: aVm({ status: { printableStatus: 'ErrorUnschedulable' } }),
    vmi: aVmi('old', { phase: 'Scheduling' }),
    want: 'restarting + restart',
  },
  'what was asked for before a kill is not asked for again': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { stateChangeRequests: [{ action: 'Stop', uid: 'old' }, { action: 'Start' }] } }),
    want: 'restarting: the VM is stopping',
  },
  'an instance on its way out is not stopped again': {
    restartNow: true,
    note: RESTARTING,
    vmi: aVmi('old', {}, { deletionTimestamp: AT }),
    want: 'restarting: the VM is stopping',
  },
  'what was noted, but not asked for, is asked for': {
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
  'it is waited for until it runs': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { printableStatus: 'Starting' } }),
    vmi: aVmi('new', { phase: 'Scheduling' }),
    want: 'restarting: the VM is Starting',
  },
  'between two instances it is waited for, too': {
    restartNow: true,
    note: RESTARTING,
    vmi: undefined,
    want: 'restarting',
  },
  'a manual one whose start is queued is waited for': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ runStrategy: 'Manual', status: { stateChangeRequests: [{ action: 'Start' }] } }),
    vmi: undefined,
    want: 'restarting',
  },
  'one that cannot start has failed': {
    restartNow: true,
    note: RESTARTING,
    vm: aVm({ status: { startFailure: { consecutiveFailCount: 3, message: 'no disk' } } }),
    vmi: undefined,
    want: 'failed: cannot start again: no disk',
  },
  'the failures of a restart by others are theirs': {
    vm: aVm({ status: { startFailure: { consecutiveFailCount: 3, message: 'no disk' } } }),
    vmi: undefined,
    note: REQUIRED,
    want: 'done: cannot start again: no disk',
  },
  'what was asked for is not asked for again before it is seen': {
    restartNow: true,
    asked: true,
    note: RESTARTING,
    want: 'restarting: the VM is stopping',
  },
  'what could not be asked for gives way to others': {
    restartNow: true,
    note: RESTARTING,
    vmi: aVmi('old', { conditions: [{ type: 'Paused', status: 'True' }] }),
    want: 'updated: the VM is paused',
  },
  'one that does not stop has failed': {
    restartNow: true,
    asked: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'failed: not up again 15 minutes after it was to restart: the VM is stopping',
  },
  'a guest that may take longer is given the time': {
    restartNow: true,
    asked: true,
    note: { ...RESTARTING, reason: 'the VM is stopping' },
    vm: aVm({ graceSeconds: 60 }),
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'restarting: the VM is stopping',
  },
  'one that was only noted, long ago, is asked for': {
    restartNow: true,
    note: RESTARTING,
    nowMs: NOW + RESTART_LIMIT_MS,
    want: 'restarting + restart',
  },
  'devices that are the same are not worth a word': {
    note: UPDATED,
    vmi: aVmi('new'),
    record: aRecord('new', began('new', { field: 'machine.type', from: OLD, to: NEW }), began('old', MOVED)),
    want: 'done',
  },
  'devices that changed are told': {
    note: UPDATED,
    vmi: aVmi('new'),
    record: aRecord('new', began('new', MOVED)),
    want: 'done: the guest sees other devices: disk-a moved from isa irq=1 to isa irq=2',
  },
  'the record is waited for': { note: UPDATED, vmi: aVmi('new'), record: aRecord('old'), want: 'updated' },
  'but not for ever': {
    note: UPDATED,
    vmi: aVmi('new'),
    nowMs: NOW + COMPARE_LIMIT_MS,
    want: 'done: its devices could not be compared: the identity record does not tell of this start',
  },
  'an alias that stands for the same type as before is told': {
    entry: { ...entry, act: 'mark' },
    note: REQUIRED,
    vmi: aVmi('new', { machine: { type: OLD } }),
    record: aRecord('new'),
    want: `done: it still runs on ${OLD}`,
  },
  'the spec of an alias is left alone': {
    entry: { ...entry, act: 'mark' },
    want: 'restartRequired + mark true for old',
  },
  'what has failed stays so': { note: { state: 'failed', reason: 'no' }, vm: aVm({ type: OLD }), want: 'failed: no' },
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
    asked: false,
    nowMs: NOW,
    ...world,
  };
}

/** `true for UID`, or `false`. */
function markText({ machineTypeRestartRequired: required, machineTypeRestartInstanceUID: uid }: RestartMark): string {
  return uid === undefined ? String(required) : `${required} for ${uid}`;
}

function told(world: EntryWorld): string {
  const { note, step } = decideEntry(world);
  const act = step?.do === 'mark' ? `mark ${markText(step.mark)}` : step?.do === 'restart' ? step.verb : step?.do;
  const state = note.vmiUid === undefined ? note.state : `${note.state} of ${note.vmiUid}`;
  const noted = note.reason === undefined ? state : `${state}: ${note.reason}`;
  return act === undefined ? noted : `${noted} + ${act}`;
}

for (const [name, { want, ...world }] of Object.entries(cases)) {
  test(name, () => {
    assert.equal(told(aWorld(world)), want);
    const decided = decideEntry(aWorld(world));
    const again = decideEntry(aWorld({ ...world, note: decided.note }));
    if (decided.step === undefined) assert.equal(again.note, decided.note, 'the same world changes nothing');
  });
}

test('what waits for a time says when to look again', () => {
  const leftMs = (world: Partial<EntryWorld>) => decideEntry(aWorld(world)).againAfterMs;
  const later = { nowMs: NOW + 1000 };
  assert.equal(leftMs({ ...later, restartNow: true, asked: true, note: RESTARTING }), RESTART_LIMIT_MS - 1000);
  assert.equal(leftMs({ ...later, note: UPDATED, vmi: aVmi('new') }), COMPARE_LIMIT_MS - 1000);
  assert.equal(leftMs({ ...later, note: UPDATED, vmi: aVmi('new', { phase: 'Scheduled' }) }), RESTART_LIMIT_MS - 1000);
  assert.equal(leftMs({ ...later, note: REQUIRED }), undefined);
});

test('the time of a note is that of its state', () => {
  const note = { ...RESTARTING, reason: 'x' };
  const { at } = decideEntry(aWorld({ restartNow: true, note, nowMs: NOW + 5000 })).note;
  assert.equal(at, AT);
});
