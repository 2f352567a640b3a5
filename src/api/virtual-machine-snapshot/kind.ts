/**
 * A request for a snapshot of a VM, and its progress. The data is in its VirtualMachineSnapshotContent.
 *
 *   (new) ─► InProgress ─► Succeeded ─► Deleting
 *                └────────► Failed
 */
import { conditionSchema } from '#api/custom-kinds/condition.ts';
import type { CustomKind } from '#api/custom-kinds/custom-kind.ts';
import { SNAPSHOT_GROUP } from '#api/names.ts';
import { findCondition } from '#kube/conditions.ts';
import type { KubeObject, ResourceType } from '#kube/meta.ts';
import { bool, list, obj, oneOf, str, time, type Infer } from '#kube/schema-dsl.ts';

/** A reference to a VM of the same namespace. */
export const vmReference = obj(
  { apiGroup: str({ description: 'kubevirt.io' }), kind: str({ description: 'VirtualMachine' }), name: str() },
  { required: ['kind', 'name'] },
);

const SNAPSHOT_PHASES = ['InProgress', 'Succeeded', 'Failed', 'Deleting', 'Unknown'] as const;
export const INDICATIONS = [
  'Online',
  'NoGuestAgent',
  'GuestAgent',
  'QuiesceTimeout',
  'Paused',
  'PartialSnapshot',
] as const;

export const snapshotSpec = obj(
  {
    source: vmReference,
    deletionPolicy: oneOf(['Delete', 'Retain'], {
      description: 'Delete (the default): the content is deleted with the snapshot. Retain: it is kept.',
    }),
    failureDeadline: str({
      description: 'Time after which an unfinished snapshot fails, for example 5m (the default). 0 means no limit.',
    }),
  },
  { required: ['source'] },
);

export const snapshotError = obj({ time: time(), message: str() });

/** Written by controllers/snapshot. */
const snapshotStatus = obj({
  sourceUID: str({ description: 'The uid of the VM.' }),
  virtualMachineSnapshotContentName: str(),
  creationTime: time({ description: 'The point in time of the disks in the snapshot.' }),
  phase: oneOf(SNAPSHOT_PHASES),
  readyToUse: bool(),
  error: snapshotError,
  conditions: list(conditionSchema),
  indications: list(oneOf(INDICATIONS), { set: true }),
  sourceIndications: list(obj({ indication: oneOf(INDICATIONS), message: str() }), { atomic: true }),
  snapshotVolumes: obj({
    includedVolumes: list(str(), { set: true }),
    excludedVolumes: list(str(), { set: true }),
  }),
});

export type VmSnapshotSpec = Infer<typeof snapshotSpec>;
export type VmSnapshotStatus = Infer<typeof snapshotStatus>;

export interface VirtualMachineSnapshot extends KubeObject {
  spec: VmSnapshotSpec;
  status?: VmSnapshotStatus;
}

export const VIRTUAL_MACHINE_SNAPSHOTS: ResourceType<VirtualMachineSnapshot> = {
  group: SNAPSHOT_GROUP,
  version: 'v1beta1',
  kind: 'VirtualMachineSnapshot',
  plural: 'virtualmachinesnapshots',
  namespaced: true,
};

export const virtualMachineSnapshot: CustomKind<VirtualMachineSnapshot> = {
  type: VIRTUAL_MACHINE_SNAPSHOTS,
  singular: 'virtualmachinesnapshot',
  shortNames: ['vmsnapshot', 'vmsnapshots'],
  categories: ['all'],
  description: 'A snapshot of a VM: its spec, its identity and its disks at one point in time.',
  spec: snapshotSpec,
  status: snapshotStatus,
  columns: [
    { name: 'SourceKind', type: 'string', jsonPath: '.spec.source.kind' },
    { name: 'SourceName', type: 'string', jsonPath: '.spec.source.name' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'ReadyToUse', type: 'boolean', jsonPath: '.status.readyToUse' },
    { name: 'CreationTime', type: 'date', jsonPath: '.status.creationTime' },
    { name: 'Error', type: 'string', jsonPath: '.status.error.message' },
  ],
};

/** The reason of the condition Progressing of a complete snapshot; it stays while the snapshot is being deleted. */
export const SNAPSHOT_COMPLETED = 'Completed';

/** Reports whether the snapshot is complete, or was before its deletion began. */
export function isSnapshotComplete({ status }: Pick<VirtualMachineSnapshot, 'status'>): boolean {
  const { reason } = findCondition(status?.conditions, 'Progressing') ?? {};
  return status?.phase === 'Succeeded' || reason === SNAPSHOT_COMPLETED;
}

/**
 * Reports whether the snapshot has ended and no longer holds the VM. True also while a complete snapshot is being
 * deleted: the deletion may wait for a restore that waits for the VM.
 */
export function isSnapshotFinished(snapshot: Pick<VirtualMachineSnapshot, 'status'>): boolean {
  return snapshot.status?.phase === 'Failed' || isSnapshotComplete(snapshot);
}
