/**
 * The content of a VM snapshot: the VM, its identity record, and the names of the snapshots of its disks. Immutable.
 */
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { SNAPSHOT_GROUP } from '#api/names.ts';
import { snapshotError } from '#api/virtual-machine-snapshot/kind.ts';
import type { VmSpec } from '#api/virtual-machine/schema.ts';
import type { IdentitySpec, IdentityStatus } from '#api/virtual-machine-identity/kind.ts';
import type { PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '#kube/meta.ts';
import { anything, bool, int64, list, obj, str, time, type Infer } from '#kube/schema-dsl.ts';

const contentSpec = obj(
  {
    virtualMachineSnapshotName: str(),
    source: obj(
      {
        virtualMachine: anything({ description: 'metadata, spec and status of the VM at the time of the snapshot.' }),
        virtualMachineIdentity: anything({
          description: 'spec and status of its identity record at the time of the snapshot.',
        }),
      },
      { required: ['virtualMachine'] },
    ),
    volumeBackups: list(
      obj(
        {
          volumeName: str(),
          persistentVolumeClaim: anything({
            description: 'metadata and spec of the claim at the time of the snapshot.',
          }),
          volumeSnapshotName: str(),
        },
        { required: ['volumeName', 'persistentVolumeClaim'] },
      ),
    ),
  },
  { required: ['source'] },
);

/** Written by controllers/snapshot. */
const contentStatus = obj({
  creationTime: time(),
  readyToUse: bool(),
  error: snapshotError,
  volumeSnapshotStatus: list(
    obj(
      {
        volumeSnapshotName: str(),
        volumeSnapshotUID: str({ description: 'Absent in contents that an earlier version or KubeVirt has written.' }),
        creationTime: time(),
        readyToUse: bool(),
        error: snapshotError,
      },
      { required: ['volumeSnapshotName'] },
    ),
  ),
  observedGeneration: int64(),
});

/** The parts of a VM that a restore needs. Contents that KubeVirt created also have them. */
export interface SnapshotVm {
  metadata: ObjectMeta;
  spec: VmSpec;
  status?: unknown;
}

/** Absent in contents that KubeVirt created, and for VMs that never started. */
export interface SnapshotIdentity {
  spec: IdentitySpec;
  status?: IdentityStatus;
}

export interface VolumeBackup {
  volumeName: string;
  persistentVolumeClaim: Pick<PersistentVolumeClaim, 'metadata' | 'spec'>;
  volumeSnapshotName?: string;
}

export interface ContentSpec {
  virtualMachineSnapshotName?: string;
  source: { virtualMachine: SnapshotVm; virtualMachineIdentity?: SnapshotIdentity };
  volumeBackups?: VolumeBackup[];
}

export type ContentStatus = Infer<typeof contentStatus>;

export interface VirtualMachineSnapshotContent extends KubeObject {
  spec: ContentSpec;
  status?: ContentStatus;
}

export const VIRTUAL_MACHINE_SNAPSHOT_CONTENTS: ResourceType<VirtualMachineSnapshotContent> = {
  group: SNAPSHOT_GROUP,
  version: 'v1beta1',
  kind: 'VirtualMachineSnapshotContent',
  plural: 'virtualmachinesnapshotcontents',
  namespaced: true,
};

export const virtualMachineSnapshotContent: CustomKind<VirtualMachineSnapshotContent> = {
  type: VIRTUAL_MACHINE_SNAPSHOT_CONTENTS,
  singular: 'virtualmachinesnapshotcontent',
  shortNames: ['vmsnapshotcontent', 'vmsnapshotcontents'],
  categories: ['all'],
  description: 'The content of a VM snapshot: the VM, its identity record and its claims.',
  spec: contentSpec,
  status: contentStatus,
  columns: [
    { name: 'ReadyToUse', type: 'boolean', jsonPath: '.status.readyToUse' },
    { name: 'CreationTime', type: 'date', jsonPath: '.status.creationTime' },
    { name: 'Error', type: 'string', jsonPath: '.status.error.message' },
  ],
};
