/** Which pod is the one of an instance. Pure. */
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The controller of instances says which pod is an instance's: people who may make pods may not write that. */
export function isActive({ metadata }: Stored<Pod>, vmi: Stored<VirtualMachineInstance> | undefined): boolean {
  return Object.hasOwn(vmi?.status?.activePods ?? {}, metadata.uid);
}
