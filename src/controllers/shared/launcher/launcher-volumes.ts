/** Builds the volumes of launcher pods, including those of the target pod of a migration. Pure. */
import { claimNameOf } from '#api/storage/claim-names.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import { STATE_POD_VOLUME } from '#api/storage/persistent-state.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import { decideVolumeMoves } from '#api/storage/volume-move.ts';
import type { ClaimView } from '#controllers/shared/launcher/claim-views.ts';
import type { Pod, PodVolume } from '#kube/core-kinds.ts';

/** Returns the volumes of the instance that the pod names. Hotplugged volumes are hotplugged in the target pod, too. */
export function volumesInPod({ spec: { volumes = [] } }: Pod, vmiSpec: VmiSpec): VmiVolume[] {
  const named = new Map(volumes.map(({ name, persistentVolumeClaim: claim }) => [name, claim?.claimName]));
  return (vmiSpec.volumes ?? []).filter((volume) => {
    const claimName = claimNameOf(volume);
    return claimName !== undefined && named.get(volume.name) === claimName;
  });
}

/** Returns a predicate for volumes that are neither migrated nor shared, and so require their node. */
export function isPinnedToNode(spec: VmiSpec, claims: ReadonlyMap<string, ClaimView>): (volume: VmiVolume) => boolean {
  const moves = decideVolumeMoves(spec, (claimName) => claims.get(claimName)?.volume);
  return ({ name }) => {
    const move = moves.get(name)?.is;
    return move !== 'moves' && move !== 'shared';
  };
}

export function podVolume(volume: VmiVolume): PodVolume {
  const { persistentVolumeClaim, ephemeral, name } = volume;
  const { claimName = '', readOnly } = persistentVolumeClaim ?? ephemeral?.persistentVolumeClaim ?? {};
  return { name, persistentVolumeClaim: { claimName, ...(readOnly === true ? { readOnly } : {}) } };
}

const ROOT_CA = 'kube-root-ca.crt';
/** The maximum length of the name of a pod volume. */
const MAX_VOLUME_NAME = 63;

/**
 * Returns volumes for the objects that become the content of disks. No container mounts them: the node agent reads
 * them, and a node may read the objects that its pods name.
 */
export function objectVolumes({ volumes = [] }: VmiSpec): PodVolume[] {
  return volumes.flatMap(({ name, configMap, secret, serviceAccount, cloudInitNoCloud }): PodVolume[] => [
    ...(configMap === undefined ? [] : [{ name, configMap: { name: configMap.name, ...optionalField(configMap) } }]),
    ...(secret === undefined ? [] : [{ name, secret: { secretName: secret.secretName, ...optionalField(secret) } }]),
    // The disk with the token also has the CA certificate of the cluster.
    ...(serviceAccount === undefined ? [] : [{ name, configMap: { name: ROOT_CA } }]),
    ...secretVolume(name, 'udata', cloudInitNoCloud?.secretRef?.name),
    ...secretVolume(name, 'ndata', cloudInitNoCloud?.networkDataSecretRef?.name),
  ]);
}

function optionalField({ optional }: { readonly optional?: boolean | undefined }): { optional?: boolean } {
  return optional === true ? { optional } : {};
}

/** Returns the volume of a cloud-init secret, with the name that KubeVirt gives it. */
function secretVolume(volume: string, part: string, secretName: string | undefined): PodVolume[] {
  if (secretName === undefined) return [];
  const prefix = volume.slice(0, MAX_VOLUME_NAME - part.length - 1).replace(/[^a-z0-9]+$/, '');
  return [{ name: `${prefix}-${part}`, secret: { secretName } }];
}

/** Returns the service account of the pod, which is the one on a disk: a node may request tokens only for its pods. */
export function serviceAccountOf({ volumes = [] }: VmiSpec): string | undefined {
  return volumes.find(({ serviceAccount }) => serviceAccount !== undefined)?.serviceAccount?.serviceAccountName;
}

/** Returns the volume of the state claim. No container mounts it: only the node agent reads it. */
export function stateVolume({ claim }: ClaimView): PodVolume {
  return { name: STATE_POD_VOLUME, persistentVolumeClaim: { claimName: claim.metadata.name } };
}
