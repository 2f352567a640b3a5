import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import { apiVersionOf, type OwnerReference } from '#kube/meta.ts';

/** Returns the owner reference for objects that are deleted with the VM. */
export function vmOwnerReference({
  metadata,
}: {
  readonly metadata: { readonly name: string; readonly uid: string };
}): OwnerReference {
  const { name, uid } = metadata;
  const apiVersion = apiVersionOf(VIRTUAL_MACHINES);
  return { apiVersion, kind: VIRTUAL_MACHINES.kind, name, uid, controller: true, blockOwnerDeletion: true };
}
