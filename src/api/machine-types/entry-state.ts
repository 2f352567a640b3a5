/**
 * Computes the current state of an entry of a plan, for listings and for a job that is restarted. Pure.
 *
 *   pending ─► updated ─► restartRequired ─► done      failed, skipped: the decision of the job is final
 *         └──────┴──────► restarting ──────► done
 *
 * A restart is detected by the uid of the instance, never by its type: an alias is the same before and after.
 */
import { isSettled, type EntryNote, type EntryState, type PlanEntry } from '#api/machine-types/plan.ts';
import { instanceType, runningInstance, specType } from '#api/machine-types/select-vm.ts';
import { type VirtualMachine, runStrategyOf } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

/**
 * Returns the same note if it is still true. A new note has no `at`, because the caller knows the time. The job must
 * remove the mark from a VM before it records the entry as done.
 */
export function decideEntryState(
  entry: PlanEntry,
  note: EntryNote | undefined,
  vm: Vm | undefined,
  vmi: Vmi | undefined,
): EntryNote {
  if (note !== undefined && isSettled(note)) return note;
  if (vm === undefined || vm.metadata.uid !== entry.uid) return { state: 'done', reason: 'the VM was deleted' };
  const spec = compareSpec(entry, note, vm);
  if (spec === 'changed' && vm.status?.machineTypeRestartRequired !== true) {
    return { state: 'skipped', reason: changedReason(vm) };
  }
  if (spec === 'asPlanned') return keepOrReplace(note, 'pending');
  const old = findOldInstance(entry, note, vm, vmi);
  if (old === undefined) {
    return note?.state === 'restarting' && isStarting(vm, vmi) ? note : { state: 'done' };
  }
  if (note?.state === 'restarting') return note;
  const unmarked = entry.act === 'mark' ? 'pending' : 'updated';
  return keepOrReplace(
    note,
    vm.status?.machineTypeRestartRequired === true ? 'restartRequired' : unmarked,
    newInstanceUid(entry, old),
  );
}

/**
 * asPlanned: not patched yet. changed: another user changed the type before the job reached the VM; their change is
 * kept.
 */
export function compareSpec(
  entry: PlanEntry,
  note: EntryNote | undefined,
  vm: Vm,
): 'asPlanned' | 'patched' | 'changed' {
  const isNoted = note !== undefined && note.state !== 'pending';
  if (entry.act === 'mark' || isNoted) return 'patched';
  const type = specType(vm);
  if (type === entry.from) return 'asPlanned';
  // A cleared type becomes the default when the VM starts.
  return type === entry.to || (type === '' && entry.act === 'clear') ? 'patched' : 'changed';
}

export const changedReason = (vm: Vm) =>
  `its machine type was changed to ${JSON.stringify(specType(vm))} in the meantime`;

/** Returns the instance that must end before the VM gets its new type; undefined once it has ended. */
export function findOldInstance(
  entry: PlanEntry,
  note: EntryNote | undefined,
  vm: Vm,
  vmi: Vmi | undefined,
): Vmi | undefined {
  const running = runningInstance(vm, vmi);
  if (running === undefined) return undefined;
  const { uid } = running.metadata;
  if (uid === (note?.vmiUid ?? entry.vmiUid)) return running;
  // After the restart was requested, every other instance is new: nothing is restarted twice.
  const isDecided = note?.state === 'restarting' || note?.state === 'restartRequired';
  // The instance started between the plan and the patch.
  const fromOldSpec = entry.act !== 'mark' && instanceType(running) === entry.from && entry.from !== '';
  return !isDecided && fromOldSpec ? running : undefined;
}

/** Reports whether a new instance is starting after the old one has ended. */
function isStarting(vm: Vm, vmi: Vmi | undefined): boolean {
  const running = runningInstance(vm, vmi);
  if (running !== undefined) return running.status?.phase !== 'Running';
  const isStartRequested = vm.status?.stateChangeRequests?.some(({ action }) => action === 'Start') ?? false;
  return isStartRequested || runStrategyOf(vm) === 'Always';
}

const newInstanceUid = (entry: PlanEntry, { metadata }: Vmi): { vmiUid?: string } =>
  metadata.uid === entry.vmiUid ? {} : { vmiUid: metadata.uid };

function keepOrReplace(note: EntryNote | undefined, state: EntryState, more: { vmiUid?: string } = {}): EntryNote {
  return note?.state === state && note.vmiUid === more.vmiUid ? note : { state, ...more };
}
