/**
 * How VMs and their instances go. A VM stops its instance and waits for it, unless it is to leave it behind (orphan).
 * The finalizer of this controller on an instance makes sure that its end is seen; it is dropped as soon as that began.
 */
import { VM_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { releaseFrom } from '#runtime/finalizer.ts';
import type { Change } from '#runtime/plan.ts';

const ORPHAN_FINALIZER = 'orphan';

export function stop(vmi: Stored<VirtualMachineInstance>): Change {
  const { name, namespace, uid } = vmi.metadata;
  const why = `Stopped the virtual machine by deleting the virtual machine instance ${uid}`;
  return { do: 'delete', type: VIRTUAL_MACHINE_INSTANCES, name: { name, namespace }, uid, why };
}

/** For a VM under deletion; undefined while it waits for its instance. */
export function removal({ vm, vmi }: VmWorld): Change | undefined {
  const orphans = vm.metadata.finalizers?.includes(ORPHAN_FINALIZER) === true;
  if (vmi === undefined || orphans)
    return releaseFrom(VM_FINALIZER, VIRTUAL_MACHINES, vm, 'nothing of the VM is left to stop');
  return isDeleting(vmi) ? undefined : stop(vmi);
}

/** For any instance: whoever owned it, an end that nobody sees any more must not be held up. */
export function releaseInstance(vmi: Stored<VirtualMachineInstance> | undefined): Change | undefined {
  if (vmi === undefined || !isDeleting(vmi)) return undefined;
  return releaseFrom(VM_FINALIZER, VIRTUAL_MACHINE_INSTANCES, vmi, 'its deletion was seen');
}
