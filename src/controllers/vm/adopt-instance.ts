/**
 * Adopts an instance that an earlier VM of the same name orphaned, as KubeVirt does; it continues to run. An instance
 * that a user created directly is never adopted or stopped by a VM of the same name. Pure.
 */
import { VM_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/**
 * Reports whether the instance belonged to a VM, which its finalizer shows, has no owner now and is not being deleted.
 */
export function isOrphan(vmi: Stored<VirtualMachineInstance>): boolean {
  const hasVmFinalizer = vmi.metadata.finalizers?.includes(VM_FINALIZER) === true;
  return hasVmFinalizer && controllerUid(vmi) === undefined && !isDeleting(vmi);
}

/** Returns the write that makes the VM the owner, or undefined if there is no instance to adopt. */
export function adoptInstance({ vm, foreignVmi, mayAdopt, lock }: VmWorld): Change | undefined {
  // A snapshot or restore that holds the VM began while the VM had no instance.
  if (foreignVmi === undefined || lock !== undefined || mayAdopt !== true || !isOrphan(foreignVmi)) return undefined;
  const { name, namespace, uid, resourceVersion, ownerReferences = [] } = foreignVmi.metadata;
  const body = { metadata: { resourceVersion, ownerReferences: [...ownerReferences, vmOwnerReference(vm)] } };
  const why = `Adopted the virtual machine instance ${uid}, which an earlier virtual machine of this name orphaned`;
  const patch = { type: 'merge', body } as const;
  return {
    do: 'patch',
    type: VIRTUAL_MACHINE_INSTANCES,
    name: { name, namespace },
    uid,
    patch,
    reason: 'Adopted',
    why,
  };
}
