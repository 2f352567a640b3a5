/** Decides whether to start or stop a VM, from its run strategy, its instance and pending requests. Pure. */
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import { backoffLeftMs } from '#controllers/vm/start/start-failure.ts';
import { isStartNext, isStopNext } from '#controllers/vm/start/state-change-requests.ts';
import { type VirtualMachineInstance, isFinal } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

type RunAction =
  | { readonly kind: 'start' }
  /** Start after this time. */
  | { readonly kind: 'wait'; readonly ms: number }
  | { readonly kind: 'stop' }
  /** Change the run strategy from Halted to Always, because a start is requested. */
  | { readonly kind: 'setAlways' }
  | { readonly kind: 'stay' };

const START: RunAction = { kind: 'start' };
const STOP: RunAction = { kind: 'stop' };
const STAY: RunAction = { kind: 'stay' };

export function runActionOf(world: VmWorld): RunAction {
  const action = actionWithoutLock(world);
  // A snapshot or restore reads or changes the disks: the VM may stop, but does not start until it is released.
  return world.lock === undefined || action.kind === 'stop' ? action : STAY;
}

function actionWithoutLock(world: VmWorld): RunAction {
  const { vm, vmi, foreignVmi } = world;
  const strategy = runStrategyOf(vm);
  if (strategy === undefined || foreignVmi !== undefined) return STAY;
  if (vmi === undefined) return WITHOUT_INSTANCE[strategy](world);
  // The instance must be gone before anything else can be done.
  return isDeleting(vmi) ? STAY : WITH_INSTANCE[strategy](world, vmi);
}

const WITHOUT_INSTANCE: Readonly<Record<RunStrategy, (world: VmWorld) => RunAction>> = {
  Always: startUnlessBackoff,
  Halted: (world) => (isStartNext(world) ? { kind: 'setAlways' } : STAY),
  Manual: (world) => (isStartNext(world) ? START : STAY),
  // status.runStrategy is updated only when there is an instance, so a VM that never had one with this strategy starts.
  RerunOnFailure: (world) =>
    isStartNext(world) || world.vm.status?.runStrategy !== 'RerunOnFailure' ? startUnlessBackoff(world) : STAY,
  Once: () => START,
};

const WITH_INSTANCE: Readonly<Record<RunStrategy, (world: VmWorld, vmi: VirtualMachineInstance) => RunAction>> = {
  Always: (world, vmi) => (isStopNext(world) || isFinal(vmi) ? STOP : STAY),
  Halted: () => STOP,
  // A finished instance stays for inspection, until a start needs its name or a restore needs the VM without instance.
  Manual: (world, vmi) => (isStopNext(world) || (isFinal(vmi) && blocksNextRun(world)) ? STOP : STAY),
  RerunOnFailure: (world, vmi) => (isStopNext(world) || isFinal(vmi) ? STOP : STAY),
  Once: () => STAY,
};

function blocksNextRun(world: VmWorld): boolean {
  return isStartNext(world) || world.lock?.kind === 'restore';
}

function startUnlessBackoff(world: VmWorld): RunAction {
  const ms = backoffLeftMs(world);
  return ms > 0 ? { kind: 'wait', ms } : START;
}
