/** Index functions: the keys of the claims to which VMs, instances and volumes refer. Pure. */
import { claimNamesOf, statusClaimNames } from '#api/storage/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Informer } from '#client/informer.ts';
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
const VMS_BY_STATUS_CLAIM = 'status-claim';

/** Returns the keys of the claims that the status names. */
export function statusClaimKeysOfVm({ metadata: { namespace }, status }: Stored<VirtualMachine>): string[] {
  return statusClaimNames(status).map((name) => keyOf({ namespace, name }));
}

/** Adds the indexes that listVmsOfClaim reads. */
export function indexVmsByClaim(vms: Informer<VirtualMachine>): void {
  vms.addIndex(VMS_BY_CLAIM, claimKeysOfVm);
  vms.addIndex(VMS_BY_STATUS_CLAIM, statusClaimKeysOfVm);
}

/** Returns the VMs whose template or status names the claim, each once. */
export function listVmsOfClaim(vms: Informer<VirtualMachine>, claimKey: string): Stored<VirtualMachine>[] {
  return [...new Set([...vms.byIndex(VMS_BY_CLAIM, claimKey), ...vms.byIndex(VMS_BY_STATUS_CLAIM, claimKey)])];
}

/** Returns the keys of all claims that the VM names. */
export function allClaimKeysOfVm(vm: Stored<VirtualMachine>): string[] {
  return [...new Set([...claimKeysOfVm(vm), ...statusClaimKeysOfVm(vm)])];
}

export function claimKeysOfInstance({ metadata: { namespace }, spec }: Stored<VirtualMachineInstance>): string[] {
  return claimNamesOf(spec).map((name) => keyOf({ namespace, name }));
}

/** Returns the key of the claim for which the volume is reserved; nothing for a volume without a claim. */
export function claimKeysOfVolume({ spec }: PersistentVolume): string[] {
  const { namespace, name } = spec.claimRef ?? {};
  return name === undefined ? [] : [keyOf({ namespace, name })];
}
