/** Builds PersistentVolumes of `selfsame.io/local`. Pure. */
import { PROVISIONED_BY, VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import {
  COPY_NODE_ANNOTATION,
  LOCAL_DRIVER,
  LOCAL_PROVISIONER,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import { scopeOf } from '#api/storage/local-class.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

type Claim = Stored<PersistentVolumeClaim>;

/** Returns a deterministic name, so that a repeated create does not create a second volume. */
export function localVolumeName({ metadata }: Claim): string {
  return `pvc-${metadata.uid}`;
}

export function isLocalVolume({ metadata, spec }: PersistentVolume): boolean {
  return spec.csi?.driver === LOCAL_DRIVER && metadata.annotations?.[PROVISIONED_BY] === LOCAL_PROVISIONER;
}

/** The snapshot with which a volume is filled, and the node that fills it, once known. */
export interface VolumeCopy {
  readonly handle: string;
  readonly node?: string;
}

/** `node`: the node of the data, for a class with scope `node`. */
export function buildLocalVolume(
  claim: Claim,
  storageClass: Stored<StorageClass>,
  node: string | undefined,
  copy?: VolumeCopy,
): PersistentVolume {
  const scope = scopeOf(storageClass) ?? 'node';
  const place = scope === 'node' ? node : undefined;
  const name = localVolumeName(claim);
  const { metadata, spec } = claim;
  const { namespace, uid, resourceVersion } = metadata;
  const { reclaimPolicy = 'Delete' } = storageClass;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: {
      name,
      annotations: {
        [PROVISIONED_BY]: LOCAL_PROVISIONER,
        ...(place === undefined ? {} : { [VOLUME_NODE_ANNOTATION]: place }),
        ...(copy?.node === undefined ? {} : { [COPY_NODE_ANNOTATION]: copy.node }),
      },
      // Kubernetes adds VOLUME_PROTECTION to every volume; setting it here saves that write.
      finalizers: [VOLUME_DATA_FINALIZER, ...(copy === undefined ? [] : [VOLUME_COPY_FINALIZER]), VOLUME_PROTECTION],
    },
    spec: {
      capacity: { storage: spec.resources?.requests?.['storage'] ?? 0 },
      accessModes: [...(spec.accessModes ?? [])],
      volumeMode: spec.volumeMode ?? 'Filesystem',
      storageClassName: storageClass.metadata.name,
      persistentVolumeReclaimPolicy: reclaimPolicy,
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace,
        name: metadata.name,
        uid,
        resourceVersion,
      },
      csi: {
        driver: LOCAL_DRIVER,
        volumeHandle: name,
        volumeAttributes: {
          scope,
          ...(place === undefined ? {} : { node: place }),
          ...(copy === undefined ? {} : { snapshot: copy.handle }),
        },
      },
    },
  };
}
