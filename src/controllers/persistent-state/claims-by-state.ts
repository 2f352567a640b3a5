/** An index of claims, by which controllers find those that may hold the persistent state of a VM. Pure. */
import { stateKeyOf, stateKeysOfClaim } from '#api/persistent-state.ts';
import { keyOf } from '#client/object-key.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';

/** By what stateIndexKeysOf gives. */
export const CLAIMS_BY_STATE = 'persistent-state';

export function stateIndexKeysOf(claim: PersistentVolumeClaim): string[] {
  const { namespace } = claim.metadata;
  return stateKeysOfClaim(claim).map((name) => keyOf({ namespace, name }));
}

/** What is looked up for a VM, or an instance without one. */
export function stateIndexKey({ namespace, name }: { readonly namespace?: string; readonly name: string }): string {
  return keyOf({ namespace, name: stateKeyOf(name) });
}
