/** The index by which controllers find the claims that may hold the persistent state of a VM. Pure. */
import { stateKeyOf, stateKeysOfClaim } from '#api/storage/persistent-state.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** Index of claims by stateIndexKeysOf. */
export const CLAIMS_BY_STATE = 'persistent-state';

export function stateIndexKeysOf(claim: PersistentVolumeClaim): string[] {
  const { namespace } = claim.metadata;
  return stateKeysOfClaim(claim).map((name) => keyOf({ namespace, name }));
}

/** Returns the key to look up for a VM, or for an instance without a VM. */
export function stateIndexKey({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return keyOf({ namespace, name: stateKeyOf(name) });
}
