/** The claims that a pod uses. Pure. */
import type { EnginePod } from '#engine/controllers/kinds.ts';

interface PodClaim {
  readonly name: string;
  /** True if the ephemeral volume controller creates the claim for this pod. */
  readonly ephemeral: boolean;
}

export function claimsOf({ metadata, spec }: EnginePod): PodClaim[] {
  return (spec.volumes ?? []).flatMap((volume): PodClaim[] => {
    if (volume.persistentVolumeClaim !== undefined) {
      return [{ name: volume.persistentVolumeClaim.claimName, ephemeral: false }];
    }
    return volume.ephemeral === undefined ? [] : [{ name: `${metadata.name}-${volume.name}`, ephemeral: true }];
  });
}
