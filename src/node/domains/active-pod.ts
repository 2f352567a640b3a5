/** The active pod of an instance. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/**
 * Reports whether the instance's status names the pod. Only the VMI controller writes that, so a user who may create pods
 * cannot attach one to an instance.
 */
export function isActivePod({ metadata }: Stored<Pod>, vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  return Object.hasOwn(vmi?.status?.activePods ?? {}, metadata.uid);
}
