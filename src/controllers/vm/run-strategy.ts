/** What each run strategy wants done, with and without an instance. Pure. */
import { isFinal, runStrategyOf } from '#api/can.ts';
import type { RunStrategy } from '#api/virtual-machine/schema.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { backoffLeftMs } from '#controllers/vm/start-failure.ts';
import { startIsNext, stopIsNext } from '#controllers/vm/state-change-requests.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';

export type Want =
  | { readonly to: 'start' }
  /** To start after that time. */
  | { readonly to: 'wait'; readonly ms: number }
  | { readonly to: 'stop' }
  /** To turn Halted into Always, because a start is asked for. */
  | { readonly to: 'wake' }
  | { readonly to: 'stay' };

const START: Want = { to: 'start' };
const STOP: Want = { to: 'stop' };
const STAY: Want = { to: 'stay' };

export function wantOf(world: VmWorld): Want {
  const want = freeWantOf(world);
  // Whoever holds the VM reads or changes its disks: it may stop, but nothing starts until it is let go.
  return world.lock === undefined || want.to === 'stop' ? want : STAY;
}

function freeWantOf(world: VmWorld): Want {
  const { vm, vmi, stranger } = world;
  const strategy = runStrategyOf(vm);
  if (strategy === undefined || stranger !== undefined) return STAY;
  if (vmi === undefined) return WITHOUT_INSTANCE[strategy](world);
  // It has to be gone before anything else can be done.
  return isDeleting(vmi) ? STAY : WITH_INSTANCE[strategy](world, vmi);
}

const WITHOUT_INSTANCE: Readonly<Record<RunStrategy, (world: VmWorld) => Want>> = {
  Always: startUnlessBackoff,
  Halted: (world) => (startIsNext(world) ? { to: 'wake' } : STAY),
  Manual: (world) => (startIsNext(world) ? START : STAY),
  // status.runStrategy follows only when there is an instance, so a VM that never had one under it starts.
  RerunOnFailure: (world) =>
    startIsNext(world) || world.vm.status?.runStrategy !== 'RerunOnFailure' ? startUnlessBackoff(world) : STAY,
  Once: () => START,
};

const WITH_INSTANCE: Readonly<Record<RunStrategy, (world: VmWorld, vmi: VirtualMachineInstance) => Want>> = {
  Always: (world, vmi) => (stopIsNext(world) || isFinal(vmi) ? STOP : STAY),
  Halted: () => STOP,
  // A finished instance stays to be looked at, until a start needs its name, or a restore that there is none.
  Manual: (world, vmi) => (stopIsNext(world) || (isFinal(vmi) && isInTheWay(world)) ? STOP : STAY),
  RerunOnFailure: (world, vmi) => (stopIsNext(world) || isFinal(vmi) ? STOP : STAY),
  Once: () => STAY,
};

function isInTheWay(world: VmWorld): boolean {
  return startIsNext(world) || world.lock?.kind === 'restore';
}

function startUnlessBackoff(world: VmWorld): Want {
  const ms = backoffLeftMs(world);
  return ms > 0 ? { to: 'wait', ms } : START;
}
