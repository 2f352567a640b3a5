/**
 * How an instance goes: its launcher pods are deleted, all of them, the node agents shut the guest down and remove the
 * pods, and only then the instance may go too.
 */
import { VMI_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { dropFinalizer } from '#controllers/finalizers.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** For an instance under deletion. */
export function removal(world: VmiWorld): Change[] {
  const pods = podsOf(world);
  if (pods.length === 0) {
    return dropFinalizer(VMI_FINALIZER, VIRTUAL_MACHINE_INSTANCES, world.vmi, 'its guest and its pod are gone');
  }
  return pods.filter((pod) => !isDeleting(pod)).map(deletionOf);
}

/** All that there are. */
export function podsOf({ pod, targetPod, otherPods }: VmiWorld): Stored<Pod>[] {
  return [pod, targetPod, ...otherPods].filter((one) => one !== undefined);
}

function deletionOf({ metadata: { namespace, name, uid } }: Stored<Pod>): Change {
  const why = `Deleted virtual machine pod ${name}`;
  return { do: 'delete', type: PODS, name: { namespace, name }, uid, why };
}
