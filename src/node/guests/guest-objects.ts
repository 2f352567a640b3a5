/** The objects of a guest in the caches of this node: its launcher pods and its instance. Pure. */
import { NODE_NAME_LABEL } from '#api/names.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { podRole } from '#node/pods/pod-role.ts';

/** Index of launcher pods by the uid of their instance. */
export const PODS_BY_INSTANCE = 'instance';
/** Index of instances by uid. */
export const INSTANCES_BY_UID = 'uid';

/** Returns the uid of the instance that a launcher pod names, or nothing for any other pod. An index function. */
export function instanceUids(pod: Pod): string[] {
  const role = podRole(pod);
  return role.is === 'launcher' ? [role.uid] : [];
}

/**
 * Reports whether the instance's status names the pod. Only the VMI controller writes that, so a user who may create pods
 * cannot attach one to an instance.
 */
export function isActivePod({ metadata }: Stored<Pod>, vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  return Object.hasOwn(vmi?.status?.activePods ?? {}, metadata.uid);
}

/** Reports whether the instance is on the node. Only the agent of that node may write its part of the status. */
export function isInstanceOnNode({ metadata, status }: VirtualMachineInstance, node: string): boolean {
  return (status?.nodeName || metadata.labels?.[NODE_NAME_LABEL]) === node;
}
