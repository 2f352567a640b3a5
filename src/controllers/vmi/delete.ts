/**
 * How an instance goes: its launcher pods are deleted, all of them, the node agents shut the guest down and remove the
 * pods, and only then the instance may go too.
 */
import { VMI_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { PODS, type Pod } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { Change } from '#runtime/plan.ts';

/** For an instance under deletion. */
export function removal(world: VmiWorld): Change[] {
  const pods = podsOf(world);
  if (pods.length === 0) return releaseOf(world.vmi);
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

function releaseOf({ metadata }: VmiWorld['vmi']): Change[] {
  const index = metadata.finalizers?.indexOf(VMI_FINALIZER) ?? -1;
  if (index < 0) return [];
  const { namespace, name, uid } = metadata;
  const path = `/metadata/finalizers/${index}`;
  const body = [
    { op: 'test', path, value: VMI_FINALIZER },
    { op: 'remove', path },
  ];
  const why = 'its guest and its pod are gone';
  const patch = { type: 'json' as const, body };
  return [{ do: 'patch', type: VIRTUAL_MACHINE_INSTANCES, name: { namespace, name }, uid, patch, why }];
}
