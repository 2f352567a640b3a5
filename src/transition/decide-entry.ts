/**
 * What the Job does next about one VM of its plan. Pure; who acts is transition-run.ts. The note that comes with a step
 * holds once the step is done, but for a restart: that is noted before it is asked for, and judged by the uid of the
 * instance afterwards, so that whoever is killed in between never restarts a guest twice.
 *
 *   pending ──patch──► updated ──slot free──► restarting ──up again, devices compared──► done
 *                         └──────mark───────► restartRequired ──instance gone, mark off──► done
 */
import { runStrategyOf } from '#api/can.ts';
import { changedReason, oldInstance, specState } from '#api/machine-types/entry-state.ts';
import { isMarked, isMarkedFor, markFor, UNMARKED, type RestartMark } from '#api/machine-types/restart-mark.ts';
import { isSettled, type EntryNote, type EntryState, type PlanEntry } from '#api/machine-types/plan.ts';
import { hasNewType, runningInstance } from '#api/machine-types/select-vm.ts';
import { obstacle, patchObstacle } from '#api/machine-types/why-not.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import { deviceChangesOfStart } from '#transition/compare-devices.ts';
import type { RestartVerb } from '#transition/restart-request.ts';

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

export interface EntryWorld {
  readonly entry: PlanEntry;
  readonly note: EntryNote;
  readonly vm: Vm | undefined;
  readonly vmi: Vmi | undefined;
  readonly record: Stored<VirtualMachineIdentity> | undefined;
  readonly restartNow: boolean;
  /** Whether this process has asked for the restart; what is seen of the VM may be older. */
  readonly asked: boolean;
  readonly nowMs: number;
}

export type Step =
  | { readonly do: 'patchType'; readonly vm: Vm }
  | { readonly do: 'mark'; readonly vm: Vm; readonly mark: RestartMark }
  /** `stop` where the VM is to run only once. */
  | { readonly do: 'restart'; readonly verb: RestartVerb; readonly vm: Vm; readonly old: Vmi };

export interface Decision {
  /** The very one of the world where nothing has changed. */
  readonly note: EntryNote;
  readonly step?: Step;
  /** Look again then, although nothing may have happened. */
  readonly againAfterMs?: number;
}

/** From the request on until the guest runs again, besides the time that the VM gives its guest to shut down. */
export const RESTART_LIMIT_MS = 15 * 60_000;
/** From the start of the guest on until the record tells of its devices. */
export const COMPARE_LIMIT_MS = 2 * 60_000;
/** A start may fail because of something that passes. */
const MAX_FAILED_STARTS = 3;

export function decideEntry(world: EntryWorld): Decision {
  const { entry, note, vm, vmi } = world;
  if (isSettled(note)) return { note };
  if (vm === undefined || vm.metadata.uid !== entry.uid) return ends(world, 'done', 'the VM was deleted');
  if (isDeleting(vm)) return waits(world, patchObstacle(vm));
  const spec = specState(entry, note, vm);
  if (spec === 'asPlanned') {
    const why = patchObstacle(vm);
    if (why !== undefined) return waits(world, why);
    return { note: noted(world, 'updated'), step: { do: 'patchType', vm } };
  }
  // One that has our mark is followed to its end, whatever has become of its spec.
  if (spec === 'changed' && !isMarked(vm)) {
    return ends(world, 'skipped', changedReason(vm));
  }
  const old = oldInstance(entry, note, vm, vmi);
  if (old === undefined) return mayStartAsBefore(world, vm) ? waits(world, note.reason) : whenGone(world, vm);
  if (hasNewType(entry, old) && note.state !== 'restarting' && note.state !== 'restartRequired') {
    return ends(world, 'done', `its guest runs on ${old.status?.machine?.type} already`);
  }
  return world.restartNow ? restart(world, vm, old) : mark(world, vm, old);
}

function mark(world: EntryWorld, vm: Vm, old: Vmi): Decision {
  const note = noted(world, 'restartRequired', undefined, old);
  if (isMarkedFor(vm, old)) return { note };
  return { note, step: { do: 'mark', vm, mark: markFor(old) } };
}

function restart(world: EntryWorld, vm: Vm, old: Vmi): Decision {
  if (isGoing(world, vm, old)) {
    // One that others have asked for is theirs.
    const state = world.note.state === 'restarting' ? 'restarting' : 'updated';
    return overdue(world) ?? again(world, noted(world, state, 'the VM is stopping', old));
  }
  const why = isUnschedulable(vm) ? patchObstacle(vm) : obstacle(vm, old);
  if (why !== undefined) return { note: noted(world, 'updated', why, old) };
  const verb = runStrategyOf(vm) === 'Once' ? 'stop' : 'restart';
  return { note: noted(world, 'restarting', undefined, old), step: { do: 'restart', verb, vm, old } };
}

/** Somebody, perhaps we before we were killed, has asked for it already. */
function isGoing({ asked }: EntryWorld, { spec, status }: Vm, old: Vmi): boolean {
  if (asked || isDeleting(old) || runStrategyOf({ spec }) === 'Halted') return true;
  const { stateChangeRequests = [] } = status ?? {};
  return stateChangeRequests.some(({ action, uid }) => action === 'Stop' && uid === old.metadata.uid);
}

/** It would wait for a node for ever, perhaps because of its old type: nothing runs that could be lost. */
const isUnschedulable = ({ status }: Vm) => status?.printableStatus === 'ErrorUnschedulable';

/** Its controller has not seen our patch yet, and may be about to make an instance of what was before. */
function mayStartAsBefore({ entry, note, vmi }: EntryWorld, vm: Vm): boolean {
  if (entry.act === 'mark' || (note.state !== 'pending' && note.state !== 'updated')) return false;
  if (runningInstance(vm, vmi) !== undefined || runStrategyOf(vm) === 'Halted') return false;
  const { generation = 0 } = vm.metadata;
  return (vm.status?.desiredGeneration ?? generation) < generation;
}

/** The old instance is not there any more, or never was. */
function whenGone(world: EntryWorld, vm: Vm): Decision {
  const { entry, note, vmi } = world;
  if (isMarked(vm)) return { note, step: { do: 'mark', vm, mark: UNMARKED } };
  if ((note.vmiUid ?? entry.vmiUid) === undefined) return ends(world, 'done');
  const running = runningInstance(vm, vmi);
  if (running?.status?.phase === 'Running') return compared(world, running);
  if (!isComingUp(vm, running)) return ends(world, 'done', 'the VM is stopped');
  const { consecutiveFailCount = 0, message = 'its start failed' } = vm.status?.startFailure ?? {};
  if (consecutiveFailCount >= MAX_FAILED_STARTS) {
    // Whoever restarted it knows; the mark is off.
    return ends(world, note.state === 'restarting' ? 'failed' : 'done', `cannot start again: ${message}`);
  }
  if (note.state === 'restarting') return overdue(world) ?? again(world, noted(world, note.state, statusText(vm)));
  if (running === undefined) return { note };
  const leftMs = RESTART_LIMIT_MS - (world.nowMs - Date.parse(running.metadata.creationTimestamp));
  return leftMs > 0 ? { note, againAfterMs: leftMs } : ends(world, 'done', 'restarted, but not up yet');
}

const statusText = ({ status }: Vm) => status?.printableStatus && `the VM is ${status.printableStatus}`;

function isComingUp({ spec, status }: Vm, running: Vmi | undefined): boolean {
  if (running !== undefined) return true;
  const strategy = runStrategyOf({ spec });
  if (strategy === 'Always') return true;
  if (strategy === 'Halted') return false;
  const asked = status?.stateChangeRequests?.some(({ action }) => action === 'Start') ?? false;
  return asked || (status?.printableStatus !== undefined && status.printableStatus !== 'Stopped');
}

function compared(world: EntryWorld, running: Vmi): Decision {
  const changes = deviceChangesOfStart(world.record, running);
  if (changes === undefined) {
    const { guestStarted } = running.status ?? {};
    const leftMs =
      COMPARE_LIMIT_MS - (world.nowMs - Date.parse(guestStarted?.at ?? running.metadata.creationTimestamp));
    if (leftMs > 0) return { note: world.note, againAfterMs: leftMs };
    return ends(world, 'done', 'its devices could not be compared: the identity record does not tell of this start');
  }
  if (changes.length > 0) return ends(world, 'done', `the guest sees other devices: ${changes.join('; ')}`);
  const type = running.status?.machine?.type;
  return ends(world, 'done', type === world.entry.from ? `it still runs on ${type}` : undefined);
}

/** Undefined while it is not too late, and for what nobody asked us to restart. */
function overdue(world: EntryWorld): Decision | undefined {
  const leftMs = restartLeftMs(world);
  if (leftMs === undefined || leftMs > 0) return undefined;
  const { reason } = world.note;
  const text = `not up again ${Math.round(limitMs(world) / 60_000)} minutes after it was to restart`;
  return ends(world, 'failed', reason === undefined ? text : `${text}: ${reason}`);
}

function restartLeftMs(world: EntryWorld): number | undefined {
  const { note, nowMs } = world;
  if (note.state !== 'restarting' || note.at === undefined) return undefined;
  return Date.parse(note.at) + limitMs(world) - nowMs;
}

/** Some guests may take longer than others to shut down. */
function limitMs({ vm }: EntryWorld): number {
  return RESTART_LIMIT_MS + (vm?.spec.template?.spec?.terminationGracePeriodSeconds ?? 0) * 1000;
}

function again(world: EntryWorld, note: EntryNote): Decision {
  const againAfterMs = restartLeftMs({ ...world, note });
  return { note, ...(againAfterMs !== undefined && { againAfterMs }) };
}

const ends = (world: EntryWorld, state: 'done' | 'failed' | 'skipped', reason?: string): Decision => ({
  note: noted(world, state, reason),
});

const waits = (world: EntryWorld, reason: string | undefined): Decision => ({
  note: noted(world, world.note.state, reason),
});

/** `at` is since when the state holds. The instance that has to go is kept until the end. */
function noted(world: EntryWorld, state: EntryState, reason?: string, old?: Vmi): EntryNote {
  const { note, entry, nowMs } = world;
  const uid = old === undefined || old.metadata.uid === entry.vmiUid ? note.vmiUid : old.metadata.uid;
  if (note.state === state && note.reason === reason && note.vmiUid === uid) return note;
  const at = note.state === state && note.at !== undefined ? note.at : timestamp(nowMs);
  return { state, ...(reason !== undefined && { reason }), at, ...(uid !== undefined && { vmiUid: uid }) };
}
