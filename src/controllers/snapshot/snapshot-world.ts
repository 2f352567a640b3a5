/** The world of one VirtualMachineSnapshot, and facts about it that several modules need. Pure. */
import type { VmiVolume } from '#api/domain/volume.ts';
import { isSnapshotFinished, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { parseGoDuration } from '#kube/go/go-duration.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface SnapshotWorld {
  readonly snapshot: Stored<VirtualMachineSnapshot>;
  /** The content that was created for the snapshot. */
  readonly content?: Stored<VirtualMachineSnapshotContent>;
  /** The source VM, read live while the snapshot is in progress. */
  readonly vm?: Stored<VirtualMachine>;
  /** Set if the VM is held for this snapshot and the content does not exist yet. */
  readonly held?: HeldVm;
  /** True if an unfinished restore uses the snapshot. */
  readonly hasRestore: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** A VM that is held, with its objects, read live. No instance of it is created meanwhile. */
export interface HeldVm {
  readonly vm: Stored<VirtualMachine>;
  /** The instance of the same name, also if the VM does not own it. */
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The identity record of the same name, also if the VM does not own it. */
  readonly identity?: Stored<VirtualMachineIdentity>;
  /** The volumes of the template, in its order. */
  readonly volumes: readonly SourceVolume[];
  /** The claim of the persistent state, if there is one. */
  readonly state?: StateClaim;
}

export interface StateClaim extends Pick<SourceVolume, 'persistentVolume' | 'snapshotClass'> {
  readonly claim: Stored<PersistentVolumeClaim>;
}

export interface SourceVolume {
  readonly volume: VmiVolume;
  /** The claim of the volume. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** The volume to which the claim is bound. */
  readonly persistentVolume?: Stored<PersistentVolume>;
  /** Name of the VolumeSnapshotClass with which the volume can be copied. */
  readonly snapshotClass?: string;
}

const DEFAULT_DEADLINE = '5m';

export function contentNameOf({ metadata }: Stored<VirtualMachineSnapshot>): string {
  return `vmsnapshot-content-${metadata.uid}`;
}

/** Reports whether the snapshot is in progress. */
export function isSnapshotInProgress(snapshot: VirtualMachineSnapshot): boolean {
  return !isSnapshotFinished(snapshot) && !isDeleting(snapshot);
}

/** Returns the time until the deadline, negative after it, or undefined if there is none. */
export function untilDeadlineMs({ metadata, spec }: Stored<VirtualMachineSnapshot>, now: number): number | undefined {
  const deadlineMs = parseGoDuration(spec.failureDeadline || DEFAULT_DEADLINE) ?? parseGoDuration(DEFAULT_DEADLINE);
  if (deadlineMs === undefined || deadlineMs <= 0) return undefined;
  return Date.parse(metadata.creationTimestamp) + deadlineMs - now;
}
