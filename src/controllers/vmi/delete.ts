/**
 * How an instance goes: its launcher pod is deleted, the node agent shuts the guest down and removes the pod, and only
 * then the instance may go too.
 */
import { VMI_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { PODS } from '#kube/core-kinds.ts';
import type { Change } from '#runtime/plan.ts';

/** For an instance under deletion. */
export function removal({ vmi, pod }: VmiWorld): Change[] {
  if (pod === undefined) return releaseOf(vmi);
  if (pod.metadata.deletionTimestamp !== undefined) return [];
  const { namespace, name, uid } = pod.metadata;
  const why = `Deleted virtual machine pod ${name}`;
  return [{ do: 'delete', type: PODS, name: { namespace, name }, uid, why }];
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
