/**
 * What is true now of an entry of a plan: for those who list it, and for the job when it starts again. Pure.
 *
 *   pending ─► updated ─► restartRequired ─► done      failed, skipped: what the job has decided stays
 *         └──────┴──────► restarting ──────► done
 *
 * Whether a VM was restarted is told by the uid of its instance, never by its type: an alias has the same before and after.
 */
import { runStrategyOf } from '#api/can.ts';
import { isSettled, type EntryNote, type EntryState, type PlanEntry } from '#api/machine-types/plan.ts';
import { instanceType, runningInstance, specType } from '#api/machine-types/select-vm.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Stored } from '#kube/meta.ts';

type Vm = Stored<VirtualMachine>;
type Vmi = Stored<VirtualMachineInstance>;

/**
 * The very note that it was given where that is still so; a new one has no `at`: the caller knows the time. A mark that is
 * still on a VM that is done is the job's to take off, before it notes so.
 */
export function stateOf(
  entry: PlanEntry,
  note: EntryNote | undefined,
  vm: Vm | undefined,
  vmi: Vmi | undefined,
): EntryNote {
  if (note !== undefined && isSettled(note)) return note;
  if (vm === undefined || vm.metadata.uid !== entry.uid) return { state: 'done', reason: 'the VM was deleted' };
  const spec = specState(entry, note, vm);
  if (spec === 'changed' && vm.status?.machineTypeRestartRequired !== true) {
    return { state: 'skipped', reason: changedReason(vm) };
  }
  if (spec === 'asPlanned') return stays(note, 'pending');
  const old = oldInstance(entry, note, vm, vmi);
  if (old === undefined) {
    return note?.state === 'restarting' && isComingUp(vm, vmi) ? note : { state: 'done' };
  }
  if (note?.state === 'restarting') return note;
  const unmarked = entry.act === 'mark' ? 'pending' : 'updated';
  return stays(note, vm.status?.machineTypeRestartRequired === true ? 'restartRequired' : unmarked, idOf(entry, old));
}

/** asPlanned: still to be patched. changed: by somebody else, before the job came to it; what they wrote stays. */
export function specState(entry: PlanEntry, note: EntryNote | undefined, vm: Vm): 'asPlanned' | 'patched' | 'changed' {
  const isNoted = note !== undefined && note.state !== 'pending';
  if (entry.act === 'mark' || isNoted) return 'patched';
  const type = specType(vm);
  if (type === entry.from) return 'asPlanned';
  // One that was cleared has the default as soon as it starts.
  return type === entry.to || (type === '' && entry.act === 'clear') ? 'patched' : 'changed';
}

export const changedReason = (vm: Vm) => `its machine type was changed to ${JSON.stringify(specType(vm))} meanwhile`;

/** The instance that has to go before the VM has its new type; undefined once it has gone, or come to its end. */
export function oldInstance(
  entry: PlanEntry,
  note: EntryNote | undefined,
  vm: Vm,
  vmi: Vmi | undefined,
): Vmi | undefined {
  const running = runningInstance(vm, vmi);
  if (running === undefined) return undefined;
  const { uid } = running.metadata;
  if (uid === (note?.vmiUid ?? entry.vmiUid)) return running;
  // Once the restart is asked for, whatever comes is new: nothing is restarted twice.
  const isDecided = note?.state === 'restarting' || note?.state === 'restartRequired';
  // It began between the plan and the patch.
  const fromOldSpec = entry.act !== 'mark' && instanceType(running) === entry.from && entry.from !== '';
  return !isDecided && fromOldSpec ? running : undefined;
}

/** After the old instance has gone: whether a new one is on its way, and not yet up. */
function isComingUp(vm: Vm, vmi: Vmi | undefined): boolean {
  const running = runningInstance(vm, vmi);
  if (running !== undefined) return running.status?.phase !== 'Running';
  const asked = vm.status?.stateChangeRequests?.some(({ action }) => action === 'Start') ?? false;
  return asked || runStrategyOf(vm) === 'Always';
}

const idOf = (entry: PlanEntry, { metadata }: Vmi): { vmiUid?: string } =>
  metadata.uid === entry.vmiUid ? {} : { vmiUid: metadata.uid };

function stays(note: EntryNote | undefined, state: EntryState, more: { vmiUid?: string } = {}): EntryNote {
  return note?.state === state && note.vmiUid === more.vmiUid ? note : { state, ...more };
}
