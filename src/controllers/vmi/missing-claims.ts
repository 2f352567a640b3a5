/** Claims that keep the launcher pod from being made. Pure. */
import { claimNamesOf } from '#api/claim-names.ts';
import { neededClaimNames, podVolumes } from '#controllers/vmi/needed-volumes.ts';
import type { ClaimView, VmiWorld } from '#controllers/vmi/vmi-world.ts';

export interface Missing {
  readonly reason: string;
  readonly message: string;
}

/** undefined when the pod can be made: claims may still be unbound, which the scheduler and the node wait for. */
export function missingClaims({ vmi, claims }: Pick<VmiWorld, 'vmi' | 'claims'>): Missing | undefined {
  for (const name of neededClaimNames(vmi.spec)) {
    const missing = missingClaim(`${vmi.metadata.namespace}/${name}`, claims.get(name));
    if (missing !== undefined) return missing;
  }
  return undefined;
}

/** undefined for one that is there to stay. */
export function missingClaim(key: string, view: ClaimView | undefined): Missing | undefined {
  if (view !== undefined && view.claim.metadata.deletionTimestamp === undefined) return undefined;
  const state = view === undefined ? 'does not exist, waiting for it to appear' : 'is being deleted';
  return { reason: 'FailedPvcNotFound', message: `PVC ${key} ${state}` };
}

/** A volume that no watch has shown yet may lie on a node, where the pod has to go. */
export function waitsForVolumes({ vmi, claims, state }: Pick<VmiWorld, 'vmi' | 'claims' | 'state'>): boolean {
  const named = claimNamesOf({ volumes: podVolumes(vmi.spec, claims) }).flatMap((name) => claims.get(name) ?? []);
  const all = state?.is === 'there' ? [...named, state] : named;
  return all.some(
    ({ claim, volume }) => Boolean(claim.spec.volumeName) && claim.status?.phase === 'Bound' && volume === undefined,
  );
}
