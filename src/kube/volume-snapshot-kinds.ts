/** The kinds of volume snapshots of a cluster's storage, with the fields that our clients read or write. */
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import type { IntOrString } from '#kube/schema-dsl.ts';

export const VOLUME_SNAPSHOT_GROUP = 'snapshot.storage.k8s.io';

/** On VolumeSnapshotClasses: `true` marks the class for snapshots that name none. */
export const DEFAULT_SNAPSHOT_CLASS = 'snapshot.storage.kubernetes.io/is-default-class';
/** On VolumeSnapshots: their content must be deleted first. */
export const BOUND_SNAPSHOT_FINALIZER = 'snapshot.storage.kubernetes.io/volumesnapshot-bound-protection';
/** On VolumeSnapshots: a claim is being filled from the snapshot. */
export const SOURCE_SNAPSHOT_FINALIZER = 'snapshot.storage.kubernetes.io/volumesnapshot-as-source-protection';

export interface VolumeSnapshotError {
  time?: string;
  message?: string;
}

export interface VolumeSnapshot extends KubeObject {
  spec: {
    source: { persistentVolumeClaimName?: string; volumeSnapshotContentName?: string };
    volumeSnapshotClassName?: string;
  };
  status?: {
    boundVolumeSnapshotContentName?: string;
    creationTime?: string;
    readyToUse?: boolean;
    restoreSize?: IntOrString;
    error?: VolumeSnapshotError;
  };
}

export interface VolumeSnapshotContent extends KubeObject {
  spec: {
    deletionPolicy: 'Delete' | 'Retain';
    driver: string;
    source: { volumeHandle?: string; snapshotHandle?: string };
    volumeSnapshotClassName?: string;
    volumeSnapshotRef: { kind?: string; apiVersion?: string; namespace?: string; name?: string; uid?: string };
    sourceVolumeMode?: string;
  };
  /** Times are in nanoseconds, sizes in bytes. */
  status?: {
    snapshotHandle?: string;
    creationTime?: number;
    readyToUse?: boolean;
    restoreSize?: number;
    error?: VolumeSnapshotError;
  };
}

export interface VolumeSnapshotClass extends KubeObject {
  driver: string;
  deletionPolicy: 'Delete' | 'Retain';
  parameters?: Record<string, string>;
}

const version = { group: VOLUME_SNAPSHOT_GROUP, version: 'v1' } as const;

export const VOLUME_SNAPSHOTS: ResourceType<VolumeSnapshot> = {
  ...version,
  kind: 'VolumeSnapshot',
  plural: 'volumesnapshots',
  namespaced: true,
};

export const VOLUME_SNAPSHOT_CONTENTS: ResourceType<VolumeSnapshotContent> = {
  ...version,
  kind: 'VolumeSnapshotContent',
  plural: 'volumesnapshotcontents',
  namespaced: false,
};

export const VOLUME_SNAPSHOT_CLASSES: ResourceType<VolumeSnapshotClass> = {
  ...version,
  kind: 'VolumeSnapshotClass',
  plural: 'volumesnapshotclasses',
  namespaced: false,
};
