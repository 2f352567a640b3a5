/** All that a decision about one VirtualMachineRestore may know, and how what it made is told from what others made. */
import { LAST_RESTORE_ANNOTATION } from '#api/names.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { VirtualMachineRestore } from '#api/virtual-machine-restore/kind.ts';
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '#kube/core-kinds.ts';
import type { KubeObject, Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

export interface RestoreWorld {
  readonly restore: Stored<VirtualMachineRestore>;
  readonly snapshot?: Stored<VirtualMachineSnapshot>;
  readonly content?: Stored<VirtualMachineSnapshotContent>;
  /** The VM of the target's name and its instance, by a live look: caches may not show yet that a guest runs. */
  readonly vm?: Stored<VirtualMachine>;
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The identity record of the target's name, whoever owns it. */
  readonly record?: Stored<VirtualMachineIdentity>;
  /** What status.restores says, or will say. */
  readonly volumes: readonly VolumeView[];
  /** The claim that holds the persistent state of the target now. */
  readonly currentState?: Stored<PersistentVolumeClaim>;
  /** The one whose place the state of this restore has taken. */
  readonly supersededState?: Stored<PersistentVolumeClaim>;
  /** `namespace/name` of another VM that has the firmware uuid of the snapshot. */
  readonly uuidHolder?: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** One disk of the snapshot, and the claim that it is restored into. */
export interface VolumeView {
  readonly volumeName: string;
  readonly claimName: string;
  readonly snapshotName: string;
  /** Absent once the content is gone. */
  readonly backup?: VolumeBackup;
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** The volume that was made for the claim. */
  readonly volume?: Stored<PersistentVolume>;
  readonly storageClass?: StorageClass;
  readonly snapshot?: VolumeSnapshot;
  /** `VirtualMachine web`: who names the claim besides the target, in a template or as it runs. */
  readonly users: readonly string[];
}

/** On claims: the name of the restore that made them, as KubeVirt writes it. */
export const RESTORE_NAME_ANNOTATION = 'restore.kubevirt.io/name';

/** What stands in LAST_RESTORE_ANNOTATION of all that this restore has written. */
export function markOf({ metadata }: Stored<VirtualMachineRestore>): string {
  return `${metadata.name}-${metadata.uid}`;
}

export function hasMark({ metadata }: KubeObject, restore: Stored<VirtualMachineRestore>): boolean {
  return metadata.annotations?.[LAST_RESTORE_ANNOTATION] === markOf(restore);
}

/** Whether the target is what the snapshot says: from then on the restore is brought to its end. */
export function isWritten({ restore, vm }: RestoreWorld): boolean {
  const { targetUID } = restore.status ?? {};
  return vm !== undefined && hasMark(vm, restore) && (targetUID === undefined || targetUID === vm.metadata.uid);
}

/** Decided once, before the first claim: the target was not there, and is made. */
export function makesTarget({ restore: { status } }: RestoreWorld): boolean {
  return status?.restores !== undefined && status.targetUID === undefined;
}

/** For a patch of one very state: a Conflict where somebody has written meanwhile. */
export function sameState({ metadata }: Stored): { op: 'replace'; path: string; value: string } {
  return { op: 'replace', path: '/metadata/resourceVersion', value: metadata.resourceVersion };
}
