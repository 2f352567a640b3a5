/**
 * The deletion of an instance: all its launcher pods are deleted, the node agents shut down the guest and remove the
 * pods, and then the finalizer of the instance is removed.
 */
import { VMI_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { removeFinalizer } from '#controllers/finalizers.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** Returns the next changes for an instance under deletion. */
export function removeVmi(world: VmiWorld): Change[] {
  const pods = podsOf(world);
  if (pods.length === 0) {
    return removeFinalizer(VMI_FINALIZER, VIRTUAL_MACHINE_INSTANCES, world.vmi, 'the guest and its pods are gone');
  }
  return pods.filter((pod) => !isDeleting(pod)).map(deletePod);
}

/** Returns all launcher pods of the instance. */
export function podsOf({ pod, targetPod, otherPods }: VmiWorld): Stored<Pod>[] {
  return [pod, targetPod, ...otherPods].filter((one) => one !== undefined);
}

function deletePod({ metadata: { namespace, name, uid } }: Stored<Pod>): Change {
  const why = `Deleted virtual machine pod ${name}`;
  return { do: 'delete', type: PODS, name: { namespace, name }, uid, why };
}
