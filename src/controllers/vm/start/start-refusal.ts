/** Finds the reason why a VM cannot run or start; its condition Failure reports it. Pure. */
import { IMPORTED_DEVICES_ANNOTATION } from '#api/names.ts';
import { stateOwnerOf } from '#api/storage/persistent-state.ts';
import { describeConflicts, STATE_CONFLICT } from '#api/storage/state-conflict.ts';
import type { VmFailure, VmWorld } from '#controllers/vm/vm-world.ts';
import { isForeignRecord } from '#controllers/vm/identity/identity.ts';
import { findImportError } from '#controllers/vm/identity/imported-devices.ts';
import { findLossRefusal } from '#controllers/vm/identity/lost-record.ts';
import { runActionOf } from '#controllers/vm/start/run-strategy.ts';
import { isDeleting } from '#kube/meta.ts';
import { runStrategyOf } from '#api/virtual-machine/kind.ts';

export const FAILED_INSTANCE_CREATE = 'FailedCreate';

export function findStartRefusal(world: VmWorld): VmFailure | undefined {
  const { vm, foreignVmi, identity, stateConflicts = [] } = world;
  if (isDeleting(vm)) return undefined;
  const { name } = vm.metadata;
  const strategy = runStrategyOf(vm);
  if (strategy === undefined) {
    return { reason: FAILED_INSTANCE_CREATE, message: `unknown runstrategy: ${vm.spec.runStrategy ?? ''}` };
  }
  if (foreignVmi !== undefined) {
    const message = `Cannot run the VM: the VirtualMachineInstance "${name}" does not belong to this VM; delete it, or create the VM with another name`;
    return { reason: FAILED_INSTANCE_CREATE, message };
  }
  if (runActionOf(world).kind === 'start' && identity !== undefined && isForeignRecord(vm, identity)) {
    const message = `Cannot start the VM: the VirtualMachineIdentity "${name}" of an earlier VM still exists; the VM starts when that record is deleted`;
    return { reason: FAILED_INSTANCE_CREATE, message };
  }
  const loss = runActionOf(world).kind === 'start' ? findLossRefusal(world) : undefined;
  if (loss !== undefined) return loss;
  if (runActionOf(world).kind === 'start' && stateConflicts.length > 0) {
    const { diskUserOf } = world;
    const subject = { ...stateOwnerOf(vm), ...(diskUserOf && { diskUserOf }), namespace: vm.metadata.namespace };
    return { reason: STATE_CONFLICT, message: describeConflicts(stateConflicts, subject) };
  }
  const importError = findImportError(world);
  if (importError !== undefined) {
    const message = `Cannot start the VM: its annotation ${IMPORTED_DEVICES_ANNOTATION} ${importError}; correct or remove the annotation`;
    return { reason: FAILED_INSTANCE_CREATE, message };
  }
  return undefined;
}
