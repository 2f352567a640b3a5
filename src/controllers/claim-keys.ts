/** Keys of the claims that objects name, under which controllers find them by index. Pure. */
import { claimNamesOf } from '#api/claim-names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** An index of VMs, by what claimKeysOfVm gives. */
export const VMS_BY_CLAIM = 'claim';

/** Those that the template names. */
export function claimKeysOfVm({ metadata: { namespace }, spec }: Stored<VirtualMachine>): string[] {
  return claimNamesOf(spec.template.spec ?? {}).map((name) => keyOf({ namespace, name }));
}

export function claimKeysOfInstance({ metadata: { namespace }, spec }: Stored<VirtualMachineInstance>): string[] {
  return claimNamesOf(spec).map((name) => keyOf({ namespace, name }));
}

/** The one that the volume is for; none for a volume that is free. */
export function claimKeysOfVolume({ spec }: PersistentVolume): string[] {
  const { namespace, name } = spec.claimRef ?? {};
  return name === undefined ? [] : [keyOf({ namespace, name })];
}
