/** Claims that keep the launcher pod from being made. Pure. */
import { claimNamesOf } from '#api/claim-names.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';

export interface Missing {
  readonly reason: string;
  readonly message: string;
}

/** undefined when the pod can be made: claims may still be unbound, which the scheduler and the node wait for. */
export function missingClaims({ vmi, claims }: Pick<VmiWorld, 'vmi' | 'claims'>): Missing | undefined {
  for (const name of claimNamesOf(vmi.spec)) {
    const view = claims.get(name);
    if (view !== undefined && view.claim.metadata.deletionTimestamp === undefined) continue;
    const state = view === undefined ? 'does not exist, waiting for it to appear' : 'is being deleted';
    return { reason: 'FailedPvcNotFound', message: `PVC ${vmi.metadata.namespace}/${name} ${state}` };
  }
  return undefined;
}

/** A volume that no watch has shown yet may lie on a node, where the pod has to go. */
export function waitsForVolumes({ claims }: Pick<VmiWorld, 'claims'>): boolean {
  for (const { claim, volume } of claims.values()) {
    if (claim.spec.volumeName && claim.status?.phase === 'Bound' && volume === undefined) return true;
  }
  return false;
}
