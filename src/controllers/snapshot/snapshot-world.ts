/** All that a decision about one VirtualMachineSnapshot may know, and what is said of it in more than one place. Pure. */
import type { Volume } from '#api/domain/volume.ts';
import { isSnapshotFinished, type VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { VirtualMachineIdentity } from '#api/virtual-machine-identity/kind.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { parseGoDuration } from '#kube/go-duration.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';

export interface SnapshotWorld {
  readonly snapshot: Stored<VirtualMachineSnapshot>;
  /** What was made for it. */
  readonly content?: Stored<VirtualMachineSnapshotContent>;
  /** By a live look, for a snapshot that is being taken. */
  readonly vm?: Stored<VirtualMachine>;
  /** The VM is held for this very snapshot, and nothing was made for it yet. */
  readonly held?: HeldVm;
  /** Whether a restore that is not finished names it. */
  readonly isRestored: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** What belongs to a VM that is held, by live looks: nobody makes an instance of it meanwhile. */
export interface HeldVm {
  readonly vm: Stored<VirtualMachine>;
  /** The instance of the same name, whoever owns it. */
  readonly vmi?: Stored<VirtualMachineInstance>;
  /** The record of the same name, whoever owns it. */
  readonly identity?: Stored<VirtualMachineIdentity>;
  /** Those of the template, in its order. */
  readonly volumes: readonly VolumeView[];
  /** The claim that holds its state, where it has one. */
  readonly state?: StateView;
}

export interface StateView extends Pick<VolumeView, 'persistentVolume' | 'snapshotClass'> {
  readonly claim: Stored<PersistentVolumeClaim>;
}

export interface VolumeView {
  readonly volume: Volume;
  /** The claim that it names as its own. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  /** To which the claim is bound. */
  readonly persistentVolume?: Stored<PersistentVolume>;
  /** The name of the VolumeSnapshotClass by which it can be copied. */
  readonly snapshotClass?: string;
}

const DEFAULT_DEADLINE = '5m';

export function contentNameOf({ metadata }: Stored<VirtualMachineSnapshot>): string {
  return `vmsnapshot-content-${metadata.uid}`;
}

/** Something is still to be made for it. */
export function isBeingTaken(snapshot: VirtualMachineSnapshot): boolean {
  return !isSnapshotFinished(snapshot) && !isDeleting(snapshot);
}

/** How long it may still take, which is less than nothing when it is late; undefined for ever. */
export function remainingMs({ metadata, spec }: Stored<VirtualMachineSnapshot>, now: number): number | undefined {
  const deadlineMs = parseGoDuration(spec.failureDeadline || DEFAULT_DEADLINE) ?? parseGoDuration(DEFAULT_DEADLINE);
  if (deadlineMs === undefined || deadlineMs <= 0) return undefined;
  return Date.parse(metadata.creationTimestamp) + deadlineMs - now;
}
