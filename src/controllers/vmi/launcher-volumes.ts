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

const ROOT_CA = 'kube-root-ca.crt';
/** What a pod may call a volume. */
const MAX_POD_VOLUME = 63;

/**
 * Objects that the content of disks is made of. In no container: the node agent reads them, and a node may read what its
 * pods name.
 */
export function objectVolumes({ volumes = [] }: VmiSpec): PodVolume[] {
  return volumes.flatMap(({ name, configMap, secret, serviceAccount, cloudInitNoCloud }): PodVolume[] => [
    ...(configMap === undefined ? [] : [{ name, configMap: { name: configMap.name, ...optionally(configMap) } }]),
    ...(secret === undefined ? [] : [{ name, secret: { secretName: secret.secretName, ...optionally(secret) } }]),
    // Its token comes with the authority to trust.
    ...(serviceAccount === undefined ? [] : [{ name, configMap: { name: ROOT_CA } }]),
    ...secretVolume(name, 'udata', cloudInitNoCloud?.secretRef?.name),
    ...secretVolume(name, 'ndata', cloudInitNoCloud?.networkDataSecretRef?.name),
  ]);
}

function optionally({ optional }: { readonly optional?: boolean | undefined }): { optional?: boolean } {
  return optional === true ? { optional } : {};
}

/** As KubeVirt names them. */
function secretVolume(volume: string, part: string, secretName: string | undefined): PodVolume[] {
  if (secretName === undefined) return [];
  const begin = volume.slice(0, MAX_POD_VOLUME - part.length - 1).replace(/[^a-z0-9]+$/, '');
  return [{ name: `${begin}-${part}`, secret: { secretName } }];
}

/** The account whose token is on a disk is the pod's: only then the node may have one made. */
export function serviceAccountOf({ volumes = [] }: VmiSpec): string | undefined {
  return volumes.find(({ serviceAccount }) => serviceAccount !== undefined)?.serviceAccount?.serviceAccountName;
}

/** In no container: only the node agent looks into it. */
export function stateVolume({ claim }: ClaimView): PodVolume {
  return { name: STATE_POD_VOLUME, persistentVolumeClaim: { claimName: claim.metadata.name } };
}
