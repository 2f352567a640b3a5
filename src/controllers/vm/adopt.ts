/**
 * An instance that a VM left behind (orphan) belongs to the next VM of its name, as in KubeVirt, and runs on meanwhile.
 * One that people made themselves is theirs: it is never adopted, nor stopped by a VM that only has its name. Pure.
 */
import { VM_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { controllerUid, isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** Our finalizer tells that it was a VM's; nothing that goes already is taken. */
export function isOrphan(vmi: Stored<VirtualMachineInstance>): boolean {
  const ours = vmi.metadata.finalizers?.includes(VM_FINALIZER) === true;
  return ours && controllerUid(vmi) === undefined && !isDeleting(vmi);
}

/** Undefined where there is nothing to adopt. */
export function adoption({ vm, stranger, mayAdopt, lock }: VmWorld): Change | undefined {
  // Whoever holds the VM has been told that it has no instance.
  if (stranger === undefined || lock !== undefined || mayAdopt !== true || !isOrphan(stranger)) return undefined;
  const { name, namespace, uid, resourceVersion, ownerReferences = [] } = stranger.metadata;
  const body = { metadata: { resourceVersion, ownerReferences: [...ownerReferences, ownedByVm(vm)] } };
  const why = `Adopted the virtual machine instance ${uid}, which an earlier virtual machine of this name left behind`;
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
