/**
 * Builders for tests of restores: valid values that take overrides. The snapshot `before` is of the VM `db` in `ns`.
 */
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { VM_RESTORE_FINALIZER } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VmiSpec } from '#api/virtual-machine-instance/spec.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VmSnapshotStatus, VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { ContentSpec, VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { RestoreWorld, RestoredVolume } from '#controllers/restore/restore-world.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { ObjectMeta, Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

export const CREATED = '2030-01-01T00:00:00Z';
export const NOW_MS = Date.parse('2030-01-01T00:01:00Z');
export const UUID = '0c53b12d-8ce6-44d9-9e1b-6b1a0a3b2a10';
export const OTHER_UUID = 'f2a0a1e4-7c4f-4b6e-8a58-0d1f6a1b2c3d';
export const MAC = '02:00:00:00:00:01';
const stored = { namespace: 'ns', resourceVersion: '1', creationTimestamp: CREATED };

export interface VmOverrides {
  readonly name?: string;
  readonly spec?: Partial<VirtualMachine['spec']>;
  readonly firmware?: NonNullable<VmiSpec['domain']['firmware']>;
  readonly claimName?: string;
  readonly metadata?: ObjectMeta;
  readonly status?: VirtualMachine['status'];
}

export function aVm({
  name = 'db',
  spec = { runStrategy: 'Halted' },
  firmware = { uuid: UUID, serial: 's1' },
  claimName = 'db-root',
  metadata,
  status,
}: VmOverrides = {}): Stored<VirtualMachine> {
  const devices = { disks: [{ name: 'root' }], interfaces: [{ name: 'default', macAddress: MAC, masquerade: {} }] };
  const volumes = [{ name: 'root', persistentVolumeClaim: { claimName } }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { ...stored, name, uid: 'vm-uid', ...metadata },
    spec: { ...spec, template: { spec: { domain: { firmware, devices }, volumes } } },
    ...(status === undefined ? {} : { status }),
  };
}

export function aVmi(name = 'db'): Stored<VirtualMachineInstance> {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { ...stored, name, uid: 'vmi-uid' },
    spec: { domain: {} },
    status: { phase: 'Running' },
  };
}

export function aSnapshot(status: VmSnapshotStatus = {}): Stored<VirtualMachineSnapshot> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshot',
    metadata: { ...stored, name: 'before', uid: 'snapshot-uid' },
    spec: { source: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: 'db' } },
    status: { phase: 'Succeeded', readyToUse: true, virtualMachineSnapshotContentName: 'content', ...status },
  };
}

export const IDENTITY = {
  spec: {
    firmware: { uuid: UUID, serial: 's1' },
    smbios: { manufacturer: 'Example' },
    interfaces: [{ name: 'default', macAddress: '02:00:00:00:00:99' }],
  },
  status: {
    machine: { type: 'pc-q35-7.2' },
    devices: [{ id: 'disk-root', type: 'disk', device: 'disk', address: { type: 'pci', bus: '0x01' } }],
    history: [{ at: CREATED, what: 'first seen', cause: 'the start of instance a' }],
  },
};

export interface ContentOverrides {
  readonly vm?: VmOverrides;
  readonly identity?: ContentSpec['source']['virtualMachineIdentity'] | 'none';
  readonly ready?: boolean;
}

export function aContent({
  vm,
  identity = IDENTITY,
  ready = true,
}: ContentOverrides = {}): Stored<VirtualMachineSnapshotContent> {
  const { metadata, spec } = aVm({ ...vm, metadata: { labels: { app: 'db' }, ...vm?.metadata } });
  const claim = {
    metadata: {
      name: 'db-root',
      uid: 'root-claim-uid',
      labels: { disk: 'root' },
      annotations: {
        note: 'kept',
        [PROTECTED_VMS_ANNOTATION]: 'db',
        'pv.kubernetes.io/bind-completed': 'yes',
        'volume.kubernetes.io/selected-node': 'n',
      },
    },
    spec: {
      accessModes: ['ReadWriteOnce' as const],
      storageClassName: 'fast',
      volumeName: 'pvc-old',
      resources: { requests: { storage: '1Gi' } },
    },
  };
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineSnapshotContent',
    metadata: { ...stored, name: 'content', uid: 'content-uid' },
    spec: {
      virtualMachineSnapshotName: 'before',
      source: {
        virtualMachine: { metadata, spec },
        ...(identity === 'none' ? {} : { virtualMachineIdentity: identity }),
      },
      volumeBackups: [{ volumeName: 'root', persistentVolumeClaim: claim, volumeSnapshotName: 'vs-root' }],
    },
    status: { readyToUse: ready },
  };
}

/** The mark of the restore on its snapshots. */
export const NEEDED = { 'needed-by-restore.selfsame.io/restore-uid': 'back' };

export function aVolumeSnapshot(restoreSize: string | number = '1Gi'): Stored<VolumeSnapshot> {
  return {
    apiVersion: 'snapshot.storage.k8s.io/v1',
    kind: 'VolumeSnapshot',
    metadata: { ...stored, name: 'vs-root', uid: 'vs-uid', annotations: NEEDED },
    spec: { source: { persistentVolumeClaimName: 'db-root' } },
    status: { readyToUse: true, restoreSize },
  };
}

export interface RestoreOverrides {
  readonly target?: string;
  readonly spec?: Partial<VirtualMachineRestore['spec']>;
  readonly status?: VirtualMachineRestore['status'];
  readonly metadata?: ObjectMeta;
}

export function aRestore({
  target = 'db',
  spec,
  status,
  metadata,
}: RestoreOverrides = {}): Stored<VirtualMachineRestore> {
  return {
    apiVersion: 'snapshot.kubevirt.io/v1beta1',
    kind: 'VirtualMachineRestore',
    metadata: { ...stored, name: 'back', uid: 'restore-uid', finalizers: [VM_RESTORE_FINALIZER], ...metadata },
    spec: {
      target: { apiGroup: 'kubevirt.io', kind: 'VirtualMachine', name: target },
      virtualMachineSnapshotName: 'before',
      ...spec,
    },
    ...(status === undefined ? {} : { status }),
  };
}

export const MARK = { 'restore.kubevirt.io/lastRestoreUID': 'back-restore-uid' };
/** The mark of the restore on the claims that it creates, and the one that no user can write. */
export const CLAIM_MARKS = { ...MARK, 'selfsame.io/restored-by': 'restore-uid' };
export const CLAIM = 'restore-restore-uid-root';
export const RESTORES = [{ volumeName: 'root', persistentVolumeClaim: CLAIM, volumeSnapshotName: 'vs-root' }];

/** Builds a claim of the restore: bound and filled, unless overridden. */
export function aClaim(
  metadata: ObjectMeta = {},
  status: PersistentVolumeClaim['status'] = { phase: 'Bound' },
): Stored<PersistentVolumeClaim> {
  const apiVersion = 'snapshot.kubevirt.io/v1beta1';
  const owner = { apiVersion, kind: 'VirtualMachineRestore', name: 'back', uid: 'restore-uid', controller: true };
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: {
      ...stored,
      name: CLAIM,
      uid: 'claim-uid',
      annotations: CLAIM_MARKS,
      ownerReferences: [owner],
      ...metadata,
    },
    spec: {
      storageClassName: 'fast',
      dataSource: { apiGroup: 'snapshot.storage.k8s.io', kind: 'VolumeSnapshot', name: 'vs-root' },
    },
    status,
  };
}

export function aVolume(finalizers: string[] = []): Stored<PersistentVolume> {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { ...stored, namespace: undefined, name: 'pv', uid: 'pv-uid', finalizers },
    spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'] },
  };
}

export function aRecord(metadata: ObjectMeta = {}): Stored<VirtualMachineIdentity> {
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine', name: 'db', uid: 'vm-uid', controller: true };
  return {
    apiVersion: 'identity.selfsame.io/v1',
    kind: 'VirtualMachineIdentity',
    metadata: { ...stored, name: 'db', uid: 'record-uid', ownerReferences: [owner], ...metadata },
    spec: { firmware: { uuid: OTHER_UUID } },
    status: { machine: { type: 'pc-q35-9.0' }, history: [{ at: CREATED, what: 'later', cause: 'life' }] },
  };
}

export function aView(view: Partial<RestoredVolume> = {}): RestoredVolume {
  const [backup] = aContent().spec.volumeBackups ?? [];
  const snapshot = aVolumeSnapshot();
  return { volumeName: 'root', claimName: CLAIM, snapshotName: 'vs-root', backup, snapshot, users: [], ...view };
}

/** Builds the world of an existing target, held and stopped, with all claims filled. */
export function aWorld(overrides: Partial<RestoreWorld> = {}): RestoreWorld {
  return {
    restore: aRestore({ status: { targetUID: 'vm-uid', restores: RESTORES, marksClaims: true } }),
    snapshot: aSnapshot(),
    content: aContent(),
    vm: aVm({ firmware: { uuid: OTHER_UUID, serial: 's2' }, status: { restoreInProgress: 'back' } }),
    record: aRecord(),
    volumes: [aView({ claim: aClaim(), volume: aVolume() })],
    now: NOW_MS,
    ...overrides,
  };
}
