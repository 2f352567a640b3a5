/** Names of the claims that the volumes of an instance use, and of those that the status of a VM names. Pure. */
import type { VmiVolume } from '#api/domain/volume.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';

export function claimNameOf({ persistentVolumeClaim, ephemeral }: VmiVolume): string | undefined {
  return persistentVolumeClaim?.claimName ?? ephemeral?.persistentVolumeClaim?.claimName;
}

/** Returns each name once, in the order of the volumes. */
export function claimNamesOf({ volumes = [] }: Pick<VmiSpec, 'volumes'>): string[] {
  return [...new Set(volumes.map(claimNameOf).filter((name) => name !== undefined))];
}

/** Returns the names of the claims that the status of a VM names. Only our own accounts write the status. */
export function statusClaimNames(status: Pick<VmStatus, 'stateClaim' | 'protectedClaims'> | undefined): string[] {
  const { stateClaim, protectedClaims = [] } = status ?? {};
  return [stateClaim, ...protectedClaims].flatMap((claim) => claim?.name ?? []);
}
