/** Finds claims that prevent the creation of the launcher pod. Pure. */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { neededClaimNames, podVolumes } from '#controllers/shared/launcher/needed-volumes.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';

/** The reason why the launcher pod cannot be created. */
export interface LaunchRefusal {
  readonly reason: string;
  readonly message: string;
}

/**
 * Returns the first missing claim, or undefined. Unbound claims are not missing: the scheduler and the node wait for
 * them.
 */
export function findMissingClaim({ vmi, claims }: Pick<VmiWorld, 'vmi' | 'claims'>): LaunchRefusal | undefined {
  for (const name of neededClaimNames(vmi.spec)) {
    const missing = checkClaim(`${vmi.metadata.namespace}/${name}`, claims.get(name));
    if (missing !== undefined) return missing;
  }
  return undefined;
}

/** Returns why the claim cannot be used, or undefined if it exists and is not being deleted. */
export function checkClaim(key: string, view: ClaimView | undefined): LaunchRefusal | undefined {
  if (view !== undefined && view.claim.metadata.deletionTimestamp === undefined) return undefined;
  const state = view === undefined ? 'does not exist, waiting for it to appear' : 'is being deleted';
  return { reason: 'FailedPvcNotFound', message: `PVC ${key} ${state}` };
}

/**
 * Reports whether the cache lacks a volume of a bound claim. The volume may be local to a node that the pod then needs.
 */
export function awaitsVolumes({ vmi, claims, state }: Pick<VmiWorld, 'vmi' | 'claims' | 'state'>): boolean {
  const named = claimNamesOf({ volumes: podVolumes(vmi.spec, claims) }).flatMap((name) => claims.get(name) ?? []);
  const all = state?.kind === 'exists' ? [...named, state] : named;
  return all.some(
    ({ claim, volume }) => Boolean(claim.spec.volumeName) && claim.status?.phase === 'Bound' && volume === undefined,
  );
}
