/** Builders of valid claims, volumes and classes for tests. They take overrides. */
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';

export const NOW = '2030-01-01T00:00:00Z';
const stored = (name: string) => ({ name, uid: `${name}-uid`, resourceVersion: '1', creationTimestamp: NOW });

export interface ClaimOptions {
  readonly meta?: ObjectMeta;
  readonly spec?: Partial<PersistentVolumeClaim['spec']>;
  readonly phase?: 'Pending' | 'Bound' | 'Lost';
}

export function aClaim({ meta, spec, phase = 'Pending' }: ClaimOptions = {}): Stored<PersistentVolumeClaim> {
  const resources = { requests: { storage: '1Gi' } };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { namespace: 'default', ...stored('disk'), ...meta },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'manual', resources, ...spec },
    status: { phase },
  };
}

export interface VolumeOptions {
  readonly meta?: ObjectMeta;
  readonly spec?: Partial<PersistentVolume['spec']>;
  readonly phase?: NonNullable<NonNullable<PersistentVolume['status']>['phase']>;
}

export function aVolume(
  name: string,
  { meta, spec, phase = 'Available' }: VolumeOptions = {},
): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...stored(name), ...meta },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'manual', ...spec },
    status: { phase },
  };
}

export function aClass(name: string, more: Partial<StorageClass> = {}): Stored<StorageClass> {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    provisioner: 'example.com/provisioner',
    ...more,
    metadata: { ...stored(name), ...more.metadata },
  };
}
