/** Builders for tests of snapshots: valid objects that take overrides. */
import { VM_SNAPSHOT_FINALIZER } from '#api/names.ts';
import type { VmSnapshotSpec, VmSnapshotStatus, VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VmiVolume } from '#api/domain/volume.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VmStatus } from '#api/virtual-machine/schema.ts';
import type { IdentityStatus, VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiPhase, VmiStatus } from '#api/virtual-machine-instance/status.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import { DEFAULT_SNAPSHOT_CLASS, type VolumeSnapshotClass } from '#kube/volume-snapshot-kinds.ts';

export const CREATED = '2026-01-01T12:00:00Z';
export const CREATED_MS = Date.parse(CREATED);
export const UUID = '0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10';
export const DELETED = { deletionTimestamp: CREATED };

function storedMetadata(name: string, uid: string, metadata: ObjectMeta = {}) {
  return { namespace: 'ns', resourceVersion: '1', creationTimestamp: CREATED, ...metadata, name, uid };
}

/** Builds a snapshot with its finalizer and no status. */
export function aSnapshot(
  spec: Partial<VmSnapshotSpec> = {},
  status?: VmSnapshotStatus,
  metadata: ObjectMeta = {},
): Stored<VirtualMachineSnapshot> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: storedMetadata('snap', 'snap-uid', { finalizers: [VM_SNAPSHOT_FINALIZER], ...metadata }),
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' }, ...spec },
    ...(status === undefined ? {} : { status }),
  };
}

export const ROOT: VmiVolume = { name: 'root', persistentVolumeClaim: { claimName: 'root-claim' } };
export const DATA: VmiVolume = { name: 'data', persistentVolumeClaim: { claimName: 'data-claim' } };
export const SEED: VmiVolume = { name: 'seed', cloudInitNoCloud: { userData: '#cloud-config' } };

/** Builds a VM that no snapshot holds. */
export function aVm(
  volumes: VmiVolume[] = [ROOT, DATA, SEED],
  status: VmStatus = {},
  metadata: ObjectMeta = {},
): Stored<VirtualMachine> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: storedMetadata('db', metadata.uid ?? 'vm-uid', { labels: { app: 'db' }, generation: 3, ...metadata }),
    spec: { runStrategy: 'Always', template: { spec: { domain: { firmware: { uuid: UUID } }, volumes } } },
    status,
  };
}

const vmOwner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'vm-uid', controller: true };

export function aVmi(
  phase: VmiPhase,
  { volumes = [ROOT, DATA, SEED], status, metadata }: VmiOverrides = {},
): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: storedMetadata('db', 'vmi-uid', { ownerReferences: [vmOwner], ...metadata }),
    spec: { domain: {}, volumes },
    status: { phase, ...status },
  };
}

export interface VmiOverrides {
  readonly volumes?: VmiVolume[];
  readonly status?: VmiStatus;
  readonly metadata?: ObjectMeta;
}

export function aRecord(metadata: ObjectMeta = {}, status: IdentityStatus = {}): Stored<VirtualMachineIdentity> {
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: storedMetadata('db', 'record-uid', { ownerReferences: [vmOwner], ...metadata }),
    spec: { firmware: { uuid: UUID, serial: 's1' } },
    status: { machine: { type: 'pc-q35-7.2' }, ...status },
  };
}

export function aClaim(
  name: string,
  phase: 'Pending' | 'Bound' = 'Bound',
  metadata: ObjectMeta = {},
): Stored<PersistentVolumeClaim> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: storedMetadata(name, `${name}-uid`, metadata),
    spec: { accessModes: ['ReadWriteOnce'], ...(phase === 'Bound' ? { volumeName: `pv-${name}` } : {}) },
    status: { phase },
  };
}

export function aPersistentVolume(claim: string, driver = 'local.selfsame.io'): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...storedMetadata(`pv-${claim}`, `pv-${claim}-uid`), namespace: undefined },
    spec: {
      capacity: { storage: '1Gi' },
      accessModes: ['ReadWriteOnce'],
      csi: { driver, volumeHandle: claim },
      claimRef: { namespace: 'ns', name: claim, uid: `${claim}-uid` },
    },
  };
}

export function aClass(
  name: string,
  { driver = 'local.selfsame.io', isDefault = false } = {},
): Stored<VolumeSnapshotClass> {
  const annotations: Record<string, string> = isDefault ? { [DEFAULT_SNAPSHOT_CLASS]: 'true' } : {};
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshotClass',
    metadata: { ...storedMetadata(name, `${name}-uid`, { annotations }), namespace: undefined },
    driver,
    deletionPolicy: 'Delete',
  };
}

export function aRestore(status: VirtualMachineRestore['status'] = {}): Stored<VirtualMachineRestore> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: storedMetadata('restore', 'restore-uid'),
    spec: { target: { kind: 'VirtualMachine', name: 'db' }, virtualMachineSnapshotName: 'snap' },
    status,
  };
}
