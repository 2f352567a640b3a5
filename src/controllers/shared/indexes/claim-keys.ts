/** Index functions: the keys of the claims to which VMs, instances and volumes refer. Pure. */
import { claimNamesOf, statusClaimNames } from '#api/storage/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** The name of an index of VMs by claimKeysOfVm. */
export const VMS_BY_CLAIM = 'claim';

/** Returns the keys of the claims in the template. */
export function claimKeysOfVm({ metadata: { namespace }, spec }: Stored<VirtualMachine>): string[] {
  return claimNamesOf(spec.template.spec ?? {}).map((name) => keyOf({ namespace, name }));
}

/** The name of an index of VMs by statusClaimKeysOfVm. */
export const VMS_BY_STATUS_CLAIM = 'status-claim';

/** Returns the keys of the claims that the status names. */
export function statusClaimKeysOfVm({ metadata: { namespace }, status }: Stored<VirtualMachine>): string[] {
  return statusClaimNames(status).map((name) => keyOf({ namespace, name }));
}

export function claimKeysOfInstance({ metadata: { namespace }, spec }: Stored<VirtualMachineInstance>): string[] {
  return claimNamesOf(spec).map((name) => keyOf({ namespace, name }));
}

/** Returns the key of the claim for which the volume is reserved; nothing for a volume without a claim. */
export function claimKeysOfVolume({ spec }: PersistentVolume): string[] {
  const { namespace, name } = spec.claimRef ?? {};
  return name === undefined ? [] : [keyOf({ namespace, name })];
}
