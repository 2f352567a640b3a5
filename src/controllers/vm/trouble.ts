/** Finds what keeps a VM from being started at all: its condition Failure says so. Pure. */
import { runStrategyOf } from '#api/can.ts';
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { stateOwnerOf } from '#api/persistent-state.ts';
import { describeConflicts, STATE_CONFLICT } from '#api/state-conflict.ts';
import type { Trouble } from '#controllers/vm/conditions.ts';
import { isForeign } from '#controllers/vm/identity.ts';
import { importFault } from '#controllers/vm/imported-devices.ts';
import { lossTrouble } from '#controllers/vm/lost-record.ts';
import { wantOf } from '#controllers/vm/run-strategy.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting } from '#kube/meta.ts';

export const FAILED_CREATE = 'FailedCreate';

export function troubleOf(world: VmWorld): Trouble | undefined {
  const { vm, stranger, identity, stateConflicts = [] } = world;
  if (isDeleting(vm)) return undefined;
  const { name } = vm.metadata;
  const strategy = runStrategyOf(vm);
  if (strategy === undefined) {
    return { reason: FAILED_CREATE, message: `unknown runstrategy: ${vm.spec.runStrategy ?? ''}` };
  }
  if (stranger !== undefined) {
    const message = `Cannot run the VM: the VirtualMachineInstance "${name}" belongs to somebody else; expected none of that name`;
    return { reason: FAILED_CREATE, message };
  }
  if (wantOf(world).to === 'start' && identity !== undefined && isForeign(vm, identity)) {
    const message = `Cannot start the VM: the VirtualMachineIdentity "${name}" of an earlier VM is still there; expected it to be gone`;
    return { reason: FAILED_CREATE, message };
  }
  const loss = wantOf(world).to === 'start' ? lossTrouble(world) : undefined;
  if (loss !== undefined) return loss;
  if (wantOf(world).to === 'start' && stateConflicts.length > 0) {
    const subject = { ...stateOwnerOf(vm), namespace: vm.metadata.namespace };
    return { reason: STATE_CONFLICT, message: describeConflicts(stateConflicts, subject) };
  }
  const fault = importFault(world);
  if (fault !== undefined) {
    const message = `Cannot start the VM: its annotation ${IMPORTED_DEVICES_ANNOTATION} ${fault}; expected the devices of an import, or no such annotation`;
    return { reason: FAILED_CREATE, message };
  }
  return undefined;
}
