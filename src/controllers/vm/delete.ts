/**
 * The deletion of VMs and of their instances. A VM under deletion stops its instance and waits until it is gone, unless
 * the instance is to be orphaned. The finalizer of this controller on an instance guarantees that the controller
 * observes the start of its deletion; it is removed right after that.
 */
import { VM_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { VIRTUAL_MACHINE_INSTANCES, type VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmWorld } from '#controllers/vm/vm-world.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { releaseFinalizer } from '#runtime/finalizer.ts';
import type { Change } from '#runtime/plan.ts';

const ORPHAN_FINALIZER = 'orphan';

export function stopInstance(vmi: Stored<VirtualMachineInstance>): Change {
  const { name, namespace, uid } = vmi.metadata;
  const why = `Stopped the virtual machine by deleting the virtual machine instance ${uid}`;
  return { do: 'delete', type: VIRTUAL_MACHINE_INSTANCES, name: { name, namespace }, uid, why };
}

/** Returns the next step for a VM under deletion, or undefined while it waits for its instance. */
export function removeVm({ vm, vmi }: VmWorld): Change | undefined {
  const leavesInstance = vm.metadata.finalizers?.includes(ORPHAN_FINALIZER) === true;
  if (vmi === undefined || leavesInstance)
    return releaseFinalizer(VM_FINALIZER, VIRTUAL_MACHINES, vm, 'the VM has no instance left to stop');
  return isDeleting(vmi) ? undefined : stopInstance(vmi);
}

/** Removes the finalizer from an instance under deletion, whether or not its VM still exists. */
export function releaseInstance(vmi: Stored<VirtualMachineInstance> | undefined): Change | undefined {
  if (vmi === undefined || !isDeleting(vmi)) return undefined;
  return releaseFinalizer(VM_FINALIZER, VIRTUAL_MACHINE_INSTANCES, vmi, 'the deletion of the instance was observed');
}
