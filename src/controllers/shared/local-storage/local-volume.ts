/** Builds PersistentVolumes of `selfsame.io/local`, and checks which claims they can serve. Pure. */
import { PROVISIONED_BY, VOLUME_PROTECTION } from '#kube/volume-keys.ts';
import {
  COPY_NODE_ANNOTATION,
  LOCAL_DRIVER,
  LOCAL_PROVISIONER,
  VOLUME_COPY_FINALIZER,
  VOLUME_DATA_FINALIZER,
  VOLUME_NODE_ANNOTATION,
} from '#api/names.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';

/** `node`: the data is on one node. `shared`: it is in a directory of all nodes. */
type VolumeScope = 'node' | 'shared';

type Claim = Stored<PersistentVolumeClaim>;

/** Returns a deterministic name, so that a repeated create does not create a second volume. */
export function localVolumeName({ metadata }: Claim): string {
  return `pvc-${metadata.uid}`;
}

export function isLocalVolume({ metadata, spec }: PersistentVolume): boolean {
  return spec.csi?.driver === LOCAL_DRIVER && metadata.annotations?.[PROVISIONED_BY] === LOCAL_PROVISIONER;
}

/** Returns undefined if the class has an unknown scope. */
export function scopeOf({ parameters }: StorageClass): VolumeScope | undefined {
  const scope = parameters?.['scope'] ?? 'node';
  return scope === 'node' || scope === 'shared' ? scope : undefined;
}

/** Returns why the class cannot serve the claim, or undefined if it can. */
export function refuseClaim(claim: Claim, storageClass: Stored<StorageClass>): string | undefined {
  const { name } = storageClass.metadata;
  const { spec } = claim;
  const scope = scopeOf(storageClass);
  if (scope === undefined) return `StorageClass "${name}": parameters.scope must be "node" or "shared"`;
  const unknown = Object.keys(storageClass.parameters ?? {}).find((key) => key !== 'scope');
  if (unknown !== undefined) return `StorageClass "${name}": parameters.${unknown} is unknown`;
  const many = spec.accessModes?.find((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany');
  if (scope === 'node' && many !== undefined) {
    return `StorageClass "${name}" keeps a volume on one node and cannot provide ${many}; use a class with scope "shared"`;
  }
  if (spec.selector !== undefined) return 'claim.spec.selector is not supported';
  return spec.resources?.requests?.['storage'] === undefined
    ? 'claim.spec.resources.requests.storage is not set'
    : undefined;
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
