/**
 * The finalizer on identity records. It is put on when a record is made or becomes the VM's, and taken off when the
 * record is to be deleted and its VM no longer needs it. Pure.
 */
import { RECORD_FINALIZER, VM_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { isHeld } from '#api/virtual-machine-identity/record-state.ts';
import { restoredFrom, uidsOf } from '#api/virtual-machine-identity/restored-vm.ts';
import { controllerUid, isDeleting, type ObjectMeta, type Stored } from '#kube/meta.ts';
import { releaseFrom } from '#runtime/finalizer.ts';
import type { Change } from '#runtime/plan.ts';

/** Reports whether the record belongs to the VM, or to the VM that it was restored from. */
export function isOfVm(record: Stored<VirtualMachineIdentity>, vm: Stored<VirtualMachine>): boolean {
  const owner = controllerUid(record);
  return owner !== undefined && uidsOf(vm).includes(owner);
}

/** Returns the metadata that the record of the VM lacks: owner and finalizer. */
export function missingHold(
  vm: Stored<VirtualMachine>,
  record: Stored<VirtualMachineIdentity>,
): Pick<ObjectMeta, 'ownerReferences' | 'finalizers'> {
  const { ownerReferences = [], finalizers = [] } = record.metadata;
  const isOwned = controllerUid(record) === vm.metadata.uid;
  const former = restoredFrom(vm);
  const others = ownerReferences.filter(({ uid }) => uid !== former);
  return {
    ...(isOwned ? {} : { ownerReferences: [...others, ownedByVm(vm)] }),
    // The API server refuses new finalizers on an object that is being deleted.
    ...(isHeld(record) || isDeleting(record) ? {} : { finalizers: [...finalizers, RECORD_FINALIZER] }),
  };
}

/** Returns the write that puts the finalizer on a record of the VM that has none: older versions made them without. */
export function holdRecord(vm: Stored<VirtualMachine>, record: Stored<VirtualMachineIdentity>): Change[] {
  if (controllerUid(record) !== vm.metadata.uid) return [];
  const { finalizers } = missingHold(vm, record);
  if (finalizers === undefined) return [];
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, finalizers } } } as const;
  const why = 'the record must not go before its VM';
  return [{ do: 'patch', type: VIRTUAL_MACHINE_IDENTITIES, name: { name, namespace }, uid, patch, why }];
}

/** Reports whether a record waits to be released: then the VM has to be looked at live. */
export function awaitsRelease(record: Stored<VirtualMachineIdentity> | undefined): boolean {
  return record !== undefined && isDeleting(record) && isHeld(record);
}

/**
 * Reports whether the VM is done with a record that is being deleted. `vm`: the one of the record's name, seen live. A
 * VM under deletion counts as gone once its own finalizer is off: it starts nothing any more, and when it is deleted in
 * the foreground it waits for the record.
 */
export function isReleasable(record: Stored<VirtualMachineIdentity>, vm: Stored<VirtualMachine> | undefined): boolean {
  if (!awaitsRelease(record)) return false;
  if (vm === undefined || !isOfVm(record, vm)) return true;
  return isDeleting(vm) && vm.metadata.finalizers?.includes(VM_FINALIZER) !== true;
}

export function releaseRecord(record: Stored<VirtualMachineIdentity>): Change | undefined {
  return releaseFrom(RECORD_FINALIZER, VIRTUAL_MACHINE_IDENTITIES, record, 'its VM is gone');
}
