/** Builds valid claims, classes, volumes and snapshots for tests of the provisioner, with overrides. */
import { LOCAL_DRIVER } from '#api/names.ts';
import { buildLocalVolume, type VolumeCopy } from '#controllers/shared/local-storage/local-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { Plan } from '#runtime/plan.ts';

export const NOW = '2030-01-01T00:00:00Z';
export const PROVISIONER = { 'volume.kubernetes.io/storage-provisioner': 'selfsame.io/local' };
export const GIB = 2 ** 30;

interface ClaimOverrides {
  readonly spec?: Partial<PersistentVolumeClaim['spec']>;
  readonly status?: PersistentVolumeClaim['status'];
  readonly annotations?: Record<string, string>;
}

export function aClaim({
  spec,
  status,
  annotations = PROVISIONER,
}: ClaimOverrides = {}): Stored<PersistentVolumeClaim> {
  const resources = { requests: { storage: '1Gi' } };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { ...storedMetadata('disk', 'u1'), namespace: 'default', resourceVersion: '5', annotations },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'local', resources, ...spec },
    status: status ?? { phase: 'Pending' },
  };
}

export function aClass(more: Partial<StorageClass> = {}): Stored<StorageClass> {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: 'selfsame.io/local',
    volumeBindingMode: 'WaitForFirstConsumer',
    allowVolumeExpansion: true,
    parameters: { scope: 'node' },
    ...more,
    metadata: storedMetadata('local', 'c'),
  };
}

export const SHARED = aClass({ volumeBindingMode: 'Immediate', parameters: { scope: 'shared' } });

interface VolumeOverrides {
  readonly storageClass?: Stored<StorageClass>;
  readonly copy?: VolumeCopy;
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: Partial<PersistentVolume['spec']>;
  readonly status?: PersistentVolume['status'];
}

/** Builds the volume of aClaim(), on node-1 if the class is node-local. */
export function aVolume(overrides: VolumeOverrides = {}): Stored<PersistentVolume> {
  const { storageClass = aClass(), copy, metadata, spec, status } = overrides;
  const built = buildLocalVolume(aClaim(), storageClass, 'node-1', copy);
  return {
    ...built,
    metadata: { ...built.metadata, ...storedMetadata('pvc-u1', 'v'), ...metadata },
    spec: { ...built.spec, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

interface SnapshotOverrides {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: VolumeSnapshot['spec'];
  readonly status?: VolumeSnapshot['status'];
}

export function aSnapshot({ metadata, spec, status }: SnapshotOverrides = {}): Stored<VolumeSnapshot> {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { ...storedMetadata('snap', 's1'), namespace: 'default', ...metadata },
    spec: spec ?? { source: { persistentVolumeClaimName: 'disk' }, volumeSnapshotClassName: 'local' },
    ...(status === undefined ? {} : { status }),
  };
}

interface ContentOverrides {
  readonly metadata?: Partial<ObjectMeta>;
  readonly spec?: Partial<VolumeSnapshotContent['spec']>;
  readonly status?: VolumeSnapshotContent['status'];
}

/** Builds the content of aSnapshot(). */
export function aContent({ metadata, spec, status }: ContentOverrides = {}): Stored<VolumeSnapshotContent> {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotContent',
    metadata: {
      ...storedMetadata('snapcontent-s1', 'c1'),
      annotations: { 'selfsame.io/snapshot-node': 'node-1' },
      finalizers: ['selfsame.io/snapshot-data'],
      ...metadata,
    },
    spec: {
      deletionPolicy: 'Delete',
      driver: LOCAL_DRIVER,
      source: { volumeHandle: 'pvc-u1' },
      sourceVolumeMode: 'Filesystem',
      volumeSnapshotClassName: 'local',
      volumeSnapshotRef: { kind: 'VolumeSnapshot', namespace: 'default', name: 'snap', uid: 's1' },
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** Describes a plan: its changes, `create PersistentVolume`, and the reasons of its Events. */
export function describePlan({ changes, events = [] }: Plan): string[] {
  return [...changes.map((change) => `${change.do} ${change.type.kind}`), ...events.map(({ reason }) => reason)];
}

function storedMetadata(name: string, uid: string): Stored['metadata'] {
  return { name, uid, resourceVersion: '1', creationTimestamp: NOW };
}
