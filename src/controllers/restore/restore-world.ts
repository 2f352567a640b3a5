/** The world of one VirtualMachineRestore, and the mark by which a restore recognizes its own objects. */
import { LAST_RESTORE_ANNOTATION, RESTORED_BY_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import { keyOf } from '#client/object-key.ts';
import { sourceSnapshotKeys } from '#controllers/shared/local-storage/snapshot-source.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

export interface RestoreWorld {
  readonly restore: Stored<VirtualMachineRestore>;
  readonly snapshot?: Stored<VirtualMachineSnapshot>;
  readonly content?: Stored<VirtualMachineSnapshotContent>;
  /** The VM with the target's name and its instance, read live: a cache may not show yet that a guest runs. */
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The identity record with the target's name, also if it belongs to an earlier VM. */
  readonly record?: Stored<VirtualMachineIdentity>;
  /** The volumes in status.restores, or those that will be there. */
  readonly volumes: readonly RestoredVolume[];
  /** The claim that holds the persistent state of the target now. */
  readonly currentState?: Stored<PersistentVolumeClaim>;
  /** The claims that are marked as replaced by the restored state, which belongs to the target by then. */
  readonly replacedStates?: readonly Stored<PersistentVolumeClaim>[];
  /** Returns a VM that has the claim as a disk, or another VM whose status names it. */
  diskUserOf?(claimName: string): string | undefined;
  /** `namespace/name` of another VM that has the firmware uuid of the snapshot. */
  readonly uuidHolder?: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** One disk of the snapshot, and the claim into which it is restored. */
export interface RestoredVolume {
  readonly volumeName: string;
  readonly claimName: string;
  readonly snapshotName: string;
  /** Absent after the content was deleted. */
  readonly backup?: VolumeBackup;
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** The volume of the claim. */
  readonly volume?: Stored<PersistentVolume>;
  readonly storageClass?: StorageClass;
  readonly snapshot?: Stored<VolumeSnapshot>;
  /** VMs and instances other than the target that use the claim, or whose status names it: `VirtualMachine web`. */
  readonly users: readonly string[];
}

/** Returns the value of LAST_RESTORE_ANNOTATION on the objects that this restore has written. */
export function restoreMark({ metadata }: Stored<VirtualMachineRestore>): string {
  return `${metadata.name}-${metadata.uid}`;
}

export function isMarkedBy({ metadata }: KubeObject, restore: Stored<VirtualMachineRestore>): boolean {
  return metadata.annotations?.[LAST_RESTORE_ANNOTATION] === restoreMark(restore);
}

/**
 * Reports whether this restore has created the claim. Users cannot write the annotation; the mark, by which earlier
 * versions recognized claims, they can.
 */
function isCreatedBy(claim: Stored<PersistentVolumeClaim>, restore: Stored<VirtualMachineRestore>): boolean {
  const { restores, marksClaims } = restore.status ?? {};
  if (restores !== undefined && marksClaims !== true) return isMarkedBy(claim, restore);
  return claim.metadata.annotations?.[RESTORED_BY_ANNOTATION] === restore.metadata.uid;
}

/** Reports whether the claim is the one of this restore: without the snapshot as its source it would be an empty disk. */
export function isRestoredClaim(
  { claim, snapshotName }: Pick<RestoredVolume, 'claim' | 'snapshotName'>,
  restore: Stored<VirtualMachineRestore>,
): boolean {
  if (claim === undefined || !isCreatedBy(claim, restore)) return false;
  return sourceSnapshotKeys(claim).includes(keyOf({ namespace: claim.metadata.namespace, name: snapshotName }));
}

/** Reports whether the target has the spec of the snapshot: from then on the restore is always completed. */
export function isTargetWritten({ restore, vm }: RestoreWorld): boolean {
  const { targetUID } = restore.status ?? {};
  return vm !== undefined && isMarkedBy(vm, restore) && (targetUID === undefined || targetUID === vm.metadata.uid);
}

/** Reports whether the restore creates its target. This is fixed once the claims are named. */
export function createsTarget({ restore: { status } }: RestoreWorld): boolean {
  return status?.restores !== undefined && status.targetUID === undefined;
}

/** Returns a JSON patch operation that causes a conflict if the object was changed meanwhile. */
export function unchangedOperation({ metadata }: Stored): { op: 'replace'; path: string; value: string } {
  return { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion };
}
