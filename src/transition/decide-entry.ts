/**
 * Decides the next step for one VM of the plan. Pure; transition-run.ts performs it. The note of a decision is valid
 * once its step is done, except for a restart: that is noted before it is requested, and later recognised by the uid of
 * the instance, so that a Job that is killed in between never restarts a guest twice.
 *
 *   pending ──patch──► updated ──slot free──► restarting ──running again, devices compared──► done
 *                         └──────mark───────► restartRequired ──instance gone, mark removed──► done
 */
import { changedReason, findOldInstance, compareSpec } from '#api/machine-types/entry-state.ts';
import {
  isRestartMarked,
  isMarkedForInstance,
  buildRestartMark,
  UNMARKED,
  type RestartMark,
} from '#api/machine-types/restart-mark.ts';
import { isSettled, type EntryNote, type EntryState, type PlanEntry } from '#api/machine-types/plan.ts';
import { hasNewType, runningInstance } from '#api/machine-types/select-vm.ts';
import { findRestartRefusal, findPatchRefusal } from '#api/machine-types/find-refusal.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { RestartVerb } from '#transition/restart-request.ts';
import { renderChanges } from '#api/identity/identity-change-text.ts';
import { devicePartOf } from '#api/identity/identity-changes.ts';

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

export interface EntryWorld {
  readonly entry: PlanEntry;
  readonly note: EntryNote;
  readonly vm: Vm | undefined;
  readonly vmi: Vmi | undefined;
  readonly record: Stored<VirtualMachineIdentity> | undefined;
  readonly restartNow: boolean;
  /** True if this process has requested the restart; the observed VM may not show it yet. */
  readonly isRestartRequested: boolean;
  readonly nowMs: number;
}

export type EntryStep =
  | { readonly do: 'patchType'; readonly vm: Vm }
  | { readonly do: 'mark'; readonly vm: Vm; readonly mark: RestartMark }
  /** The verb is `stop` for the run strategy Once. */
  | { readonly do: 'restart'; readonly verb: RestartVerb; readonly vm: Vm; readonly old: Vmi };

export interface EntryDecision {
  /** The same object as in the world if nothing has changed. */
  readonly note: EntryNote;
  readonly step?: EntryStep;
  /** Decide again after this time, even without a change. */
  readonly recheckAfterMs?: number;
}

/** The maximum time from the request until the guest runs again, without the grace period of the VM. */
export const RESTART_LIMIT_MS = 15 * 60_000;
/** The maximum time from the start of the guest until the record has its devices. */
export const COMPARE_LIMIT_MS = 2 * 60_000;
/** More than one, because a start may fail for a temporary reason. */
const MAX_FAILED_STARTS = 3;

export function decideEntry(world: EntryWorld): EntryDecision {
  const { entry, note, vm, vmi } = world;
  if (isSettled(note)) return { note };
  if (vm === undefined || vm.metadata.uid !== entry.uid) return settle(world, 'done', 'the VM was deleted');
  if (isDeleting(vm)) return wait(world, findPatchRefusal(vm));
  const spec = compareSpec(entry, note, vm);
  if (spec === 'asPlanned') {
    const why = findPatchRefusal(vm);
    if (why !== undefined) return wait(world, why);
    return { note: updateNote(world, 'updated'), step: { do: 'patchType', vm } };
  }
  // A marked VM is followed until its restart, even if its spec has changed.
  if (spec === 'changed' && !isRestartMarked(vm)) {
    return settle(world, 'skipped', changedReason(vm));
  }
  const old = findOldInstance(entry, note, vm, vmi);
  if (old === undefined)
    return mayStartWithOldType(world, vm) ? wait(world, note.reason) : decideWithoutOldInstance(world, vm);
  if (hasNewType(entry, old) && note.state !== 'restarting' && note.state !== 'restartRequired') {
    return settle(world, 'done', `the guest already runs on ${old.status?.machine?.type}`);
  }
  return world.restartNow ? decideRestart(world, vm, old) : decideMark(world, vm, old);
}

function decideMark(world: EntryWorld, vm: Vm, old: Vmi): EntryDecision {
  const note = updateNote(world, 'restartRequired', undefined, old);
  if (isMarkedForInstance(vm, old)) return { note };
  return { note, step: { do: 'mark', vm, mark: buildRestartMark(old) } };
}

function decideRestart(world: EntryWorld, vm: Vm, old: Vmi): EntryDecision {
  if (isStopping(world, vm, old)) {
    // A restart that another user requested does not become a restart of this Job.
    const state = world.note.state === 'restarting' ? 'restarting' : 'updated';
    return failIfOverdue(world) ?? recheckLater(world, updateNote(world, state, 'the VM is stopping', old));
  }
  const why = isUnschedulable(vm) ? findPatchRefusal(vm) : findRestartRefusal(vm, old);
  if (why !== undefined) return { note: updateNote(world, 'updated', why, old) };
  const verb = runStrategyOf(vm) === 'Once' ? 'stop' : 'restart';
  return { note: updateNote(world, 'restarting', undefined, old), step: { do: 'restart', verb, vm, old } };
}

/** Reports whether a stop is already requested, by this Job, an earlier process of it, or a user. */
function isStopping({ isRestartRequested }: EntryWorld, { spec, status }: Vm, old: Vmi): boolean {
  if (isRestartRequested || isDeleting(old) || runStrategyOf({ spec }) === 'Halted') return true;
  const { stateChangeRequests = [] } = status ?? {};
  return stateChangeRequests.some(({ action, uid }) => action === 'Stop' && uid === old.metadata.uid);
}

/** Such a VM may wait for a node for ever because of its old type; no guest runs that a restart could disturb. */
const isUnschedulable = ({ status }: Vm) => status?.printableStatus === 'ErrorUnschedulable';

/** Reports whether the VM controller has not seen our patch yet and may create an instance with the old type. */
function mayStartWithOldType({ entry, note, vmi }: EntryWorld, vm: Vm): boolean {
  if (entry.act === 'mark' || (note.state !== 'pending' && note.state !== 'updated')) return false;
  if (runningInstance(vm, vmi) !== undefined || runStrategyOf(vm) === 'Halted') return false;
  const { generation = 0 } = vm.metadata;
  return (vm.status?.desiredGeneration ?? generation) < generation;
}

/** Decides for a VM whose old instance is gone or never existed. */
function decideWithoutOldInstance(world: EntryWorld, vm: Vm): EntryDecision {
  const { entry, note, vmi } = world;
  if (isRestartMarked(vm)) return { note, step: { do: 'mark', vm, mark: UNMARKED } };
  if ((note.vmiUid ?? entry.vmiUid) === undefined) return settle(world, 'done');
  const running = runningInstance(vm, vmi);
  if (running?.status?.phase === 'Running') return compareDevices(world, running);
  if (!willRun(vm, running)) return settle(world, 'done', 'the VM is stopped');
  const { consecutiveFailCount = 0, message = 'its start failed' } = vm.status?.startFailure ?? {};
  if (consecutiveFailCount >= MAX_FAILED_STARTS) {
    // A failed restart by a user is not a failure of this Job; the mark is removed.
    return settle(world, note.state === 'restarting' ? 'failed' : 'done', `cannot start again: ${message}`);
  }
  if (note.state === 'restarting')
    return failIfOverdue(world) ?? recheckLater(world, updateNote(world, note.state, statusText(vm)));
  if (running === undefined) return { note };
  const leftMs = RESTART_LIMIT_MS - (world.nowMs - Date.parse(running.metadata.creationTimestamp));
  return leftMs > 0 ? { note, recheckAfterMs: leftMs } : settle(world, 'done', 'restarted, but not running yet');
}

const statusText = ({ status }: Vm) => status?.printableStatus && `the VM is ${status.printableStatus}`;

function willRun({ spec, status }: Vm, running: Vmi | undefined): boolean {
  if (running !== undefined) return true;
  const strategy = runStrategyOf({ spec });
  if (strategy === 'Always') return true;
  if (strategy === 'Halted') return false;
  const isStartRequested = status?.stateChangeRequests?.some(({ action }) => action === 'Start') ?? false;
  return isStartRequested || (status?.printableStatus !== undefined && status.printableStatus !== 'Stopped');
}

function compareDevices(world: EntryWorld, running: Vmi): EntryDecision {
  const changes = deviceChangesOfStart(world.record, running);
  if (changes === undefined) {
    const { guestStarted } = running.status ?? {};
    const leftMs =
      COMPARE_LIMIT_MS - (world.nowMs - Date.parse(guestStarted?.at ?? running.metadata.creationTimestamp));
    if (leftMs > 0) return { note: world.note, recheckAfterMs: leftMs };
    return settle(world, 'done', 'its devices could not be compared: the identity record has no entry for this start');
  }
  if (changes.length > 0) return settle(world, 'done', `the guest sees other devices: ${changes.join('; ')}`);
  const type = running.status?.machine?.type;
  return settle(world, 'done', type === world.entry.from ? `it still runs on ${type}` : undefined);
}

/** Returns a failure if the restart takes too long; undefined otherwise, and if this Job does not restart the VM. */
function failIfOverdue(world: EntryWorld): EntryDecision | undefined {
  const leftMs = restartLeftMs(world);
  if (leftMs === undefined || leftMs > 0) return undefined;
  const { reason } = world.note;
  const text = `not running ${Math.round(limitMs(world) / 60_000)} minutes after the restart was requested`;
  return settle(world, 'failed', reason === undefined ? text : `${text}: ${reason}`);
}

function restartLeftMs(world: EntryWorld): number | undefined {
  const { note, nowMs } = world;
  if (note.state !== 'restarting' || note.at === undefined) return undefined;
  return Date.parse(note.at) + limitMs(world) - nowMs;
}

/** Returns the limit including the grace period, which the guest may use to shut down. */
function limitMs({ vm }: EntryWorld): number {
  return RESTART_LIMIT_MS + (vm?.spec.template?.spec?.terminationGracePeriodSeconds ?? 0) * 1000;
}

function recheckLater(world: EntryWorld, note: EntryNote): EntryDecision {
  const recheckAfterMs = restartLeftMs({ ...world, note });
  return { note, ...(recheckAfterMs !== undefined && { recheckAfterMs }) };
}

const settle = (world: EntryWorld, state: 'done' | 'failed' | 'skipped', reason?: string): EntryDecision => ({
  note: updateNote(world, state, reason),
});

const wait = (world: EntryWorld, reason: string | undefined): EntryDecision => ({
  note: updateNote(world, world.note.state, reason),
});

/**
 * Returns the new note. `at` is the time of the last state change; the uid of the old instance is kept until the end.
 */
function updateNote(world: EntryWorld, state: EntryState, reason?: string, old?: Vmi): EntryNote {
  const { note, entry, nowMs } = world;
  const uid = old === undefined || old.metadata.uid === entry.vmiUid ? note.vmiUid : old.metadata.uid;
  if (note.state === state && note.reason === reason && note.vmiUid === uid) return note;
  const at = note.state === state && note.at !== undefined ? note.at : timestamp(nowMs);
  return { state, ...(reason !== undefined && { reason }), at, ...(uid !== undefined && { vmiUid: uid }) };
}

/**
 * Returns the device changes at the start of the instance, or undefined while the record does not have this instance
 * yet. Devices in the first entry of a record are not changes.
 */
function deviceChangesOfStart(
  record: Stored<VirtualMachineIdentity> | undefined,
  vmi: Stored<VirtualMachineInstance>,
): string[] | undefined {
  const { instance, deviceHash, history = [] } = record?.status ?? {};
  const reportedHash = vmi.status?.deviceHash;
  if (!reportedHash || instance !== vmi.metadata.uid || deviceHash !== reportedHash) return undefined;
  return history
    .filter((entry) => entry.instance === vmi.metadata.uid && !entry.what?.startsWith('first seen '))
    .flatMap(({ changes = [] }) => renderChanges(changes.filter((change) => devicePartOf(change) !== undefined)));
}
