/**
 * The finalizer on identity records. It is added when a record is created or adopted, and removed when the record is
 * being deleted and its VM no longer needs it. Pure.
 */
import { RECORD_FINALIZER, VM_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import { VIRTUAL_MACHINE_IDENTITIES, type VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import { hasRecordFinalizer } from '#api/virtual-machine-identity/record-state.ts';
import { restoredFrom, uidsOf } from '#api/virtual-machine-identity/restored-vm.ts';
import { controllerUid, isDeleting, type ObjectMeta, type Stored } from '#kube/meta.ts';
import { releaseFinalizer } from '#runtime/finalizer.ts';
import type { Change } from '#runtime/plan.ts';

/** Reports whether the record belongs to the VM, or to the VM that it was restored from. */
export function isOfVm(record: Stored<VirtualMachineIdentity>, vm: Stored<VirtualMachine>): boolean {
  const owner = controllerUid(record);
  return owner !== undefined && uidsOf(vm).includes(owner);
}

/** Returns the metadata that the record of the VM lacks: owner and finalizer. */
export function missingRecordMetadata(
  vm: Stored<VirtualMachine>,
  record: Stored<VirtualMachineIdentity>,
): Pick<ObjectMeta, 'ownerReferences' | 'finalizers'> {
  const { ownerReferences = [], finalizers = [] } = record.metadata;
  const isOwned = controllerUid(record) === vm.metadata.uid;
  const former = restoredFrom(vm);
  const others = ownerReferences.filter(({ uid }) => uid !== former);
  return {
    ...(isOwned ? {} : { ownerReferences: [...others, vmOwnerReference(vm)] }),
    // The API server refuses new finalizers on an object that is being deleted.
    ...(hasRecordFinalizer(record) || isDeleting(record) ? {} : { finalizers: [...finalizers, RECORD_FINALIZER] }),
  };
}

/** Returns the write that adds the finalizer to a record of the VM that has none: older versions did not set it. */
export function addRecordFinalizer(vm: Stored<VirtualMachine>, record: Stored<VirtualMachineIdentity>): Change[] {
  if (controllerUid(record) !== vm.metadata.uid) return [];
  const { finalizers } = missingRecordMetadata(vm, record);
  if (finalizers === undefined) return [];
  const { name, namespace, uid, resourceVersion } = record.metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, finalizers } } } as const;
  const why = 'the record must not be deleted before its VM';
  return [{ do: 'patch', type: VIRTUAL_MACHINE_IDENTITIES, name: { name, namespace }, uid, patch, why }];
}

/** Reports whether a record is being deleted and still has the finalizer; the VM must then be read from the server. */
export function awaitsRelease(record: Stored<VirtualMachineIdentity> | undefined): boolean {
  return record !== undefined && isDeleting(record) && hasRecordFinalizer(record);
}

/**
 * Reports whether the VM no longer needs a record that is being deleted. `vm` is the VM of the record's name, as read
 * from the server. A VM under deletion no longer needs it once its own finalizer is removed: it cannot start any more,
 * and a deletion in the foreground waits for the record.
 */
export function isReleasable(record: Stored<VirtualMachineIdentity>, vm: Stored<VirtualMachine> | undefined): boolean {
  if (!awaitsRelease(record)) return false;
  if (vm === undefined || !isOfVm(record, vm)) return true;
  return isDeleting(vm) && vm.metadata.finalizers?.includes(VM_FINALIZER) !== true;
}

export function releaseRecord(record: Stored<VirtualMachineIdentity>): Change | undefined {
  return releaseFinalizer(RECORD_FINALIZER, VIRTUAL_MACHINE_IDENTITIES, record, 'the VM of the record is gone');
}
