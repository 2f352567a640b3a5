/** The volumes of launcher pods, and which of them a pod to which the guest moves has. Pure. */
import { claimNameOf } from '#api/claim-names.ts';
import type { Volume } from '#api/domain/volume.ts';
import { STATE_POD_VOLUME } from '#api/persistent-state.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { volumeMoves } from '#api/volume-move.ts';
import type { ClaimView } from '#controllers/vmi/vmi-world.ts';
import type { Pod, PodVolume } from '#kube/core-kinds.ts';

/** What was plugged in late is so in the next pod, too. */
export function volumesAlsoIn({ spec: { volumes = [] } }: Pod, vmiSpec: VmiSpec): Volume[] {
  const named = new Map(volumes.map(({ name, persistentVolumeClaim: claim }) => [name, claim?.claimName]));
  return (vmiSpec.volumes ?? []).filter((volume) => {
    const claimName = claimNameOf(volume);
    return claimName !== undefined && named.get(volume.name) === claimName;
  });
}

/** Data that neither goes along nor is reached from elsewhere keeps the pod where it is. */
export function staysBehind(spec: VmiSpec, claims: ReadonlyMap<string, ClaimView>): (volume: Volume) => boolean {
  const moves = volumeMoves(spec, (claimName) => claims.get(claimName)?.volume);
  return ({ name }) => {
    const move = moves.get(name)?.is;
    return move !== 'moves' && move !== 'shared';
  };
}

export function podVolume(volume: Volume): PodVolume {
  const { persistentVolumeClaim, ephemeral, name } = volume;
  const { claimName = '', readOnly } = persistentVolumeClaim ?? ephemeral?.persistentVolumeClaim ?? {};
  return { name, persistentVolumeClaim: { claimName, ...(readOnly === true ? { readOnly } : {}) } };
}

/** In no container: only the node agent looks into it. */
export function stateVolume({ claim }: ClaimView): PodVolume {
  return { name: STATE_POD_VOLUME, persistentVolumeClaim: { claimName: claim.metadata.name } };
}

/** A node may read a secret only while a pod on it names it. Whether there is one is for the node to find out. */
export function secretVolumes({ volumes = [] }: VmiSpec): PodVolume[] {
  const names = volumes.flatMap(({ cloudInitNoCloud: source }) => [
    source?.secretRef?.name ?? [],
    source?.networkDataSecretRef?.name ?? [],
  ]);
  const secrets = [...new Set(names.flat())];
  return secrets.map((secretName, i) => ({ name: `selfsame-secret-${i}`, secret: { secretName, optional: true } }));
}
