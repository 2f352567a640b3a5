/** PersistentVolumes of `selfsame.io/local`: what they are made of, and which claims they can serve. Pure. */
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

/** `node`: the data lies on one node. `shared`: in a directory that all nodes see. */
export type Scope = 'node' | 'shared';

type Claim = Stored<PersistentVolumeClaim>;

/** Deterministic: making it twice makes one. */
export function volumeNameFor({ metadata }: Claim): string {
  return `pvc-${metadata.uid}`;
}

export function isOurs({ metadata, spec }: PersistentVolume): boolean {
  return spec.csi?.driver === LOCAL_DRIVER && metadata.annotations?.[PROVISIONED_BY] === LOCAL_PROVISIONER;
}

/** undefined: the class says something that we do not know. */
export function scopeOf({ parameters }: StorageClass): Scope | undefined {
  const scope = parameters?.['scope'] ?? 'node';
  return scope === 'node' || scope === 'shared' ? scope : undefined;
}

/** Why such a claim cannot be served, for people. */
export function refusal(claim: Claim, storageClass: Stored<StorageClass>): string | undefined {
  const { name } = storageClass.metadata;
  const { spec } = claim;
  const scope = scopeOf(storageClass);
  if (scope === undefined) return `StorageClass "${name}": parameters.scope must be "node" or "shared"`;
  const unknown = Object.keys(storageClass.parameters ?? {}).find((key) => key !== 'scope');
  if (unknown !== undefined) return `StorageClass "${name}": parameters.${unknown} is not known`;
  const many = spec.accessModes?.find((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany');
  if (scope === 'node' && many !== undefined) {
    return `StorageClass "${name}" keeps a volume on one node and cannot give ${many}; a class with scope "shared" can`;
  }
  if (spec.selector !== undefined) return 'claim.spec.selector is not supported';
  return spec.resources?.requests?.['storage'] === undefined
    ? 'claim.spec.resources.requests.storage is not set'
    : undefined;
}

/** What a volume is filled with, and by which node, once that is known. */
export interface VolumeCopy {
  readonly handle: string;
  readonly node?: string;
}

/** `node`: where a claim of scope `node` gets its data. */
export function buildVolume(
  claim: Claim,
  storageClass: Stored<StorageClass>,
  node: string | undefined,
  copy?: VolumeCopy,
): PersistentVolume {
  const scope = scopeOf(storageClass) ?? 'node';
  const place = scope === 'node' ? node : undefined;
  const name = volumeNameFor(claim);
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
      // The cluster gives its own to every volume; there from the start, nobody has to write it.
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
