/** All that a decision about one VirtualMachineSnapshotContent may know. */
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

export interface ContentWorld {
  readonly content: Stored<VirtualMachineSnapshotContent>;
  /** The very snapshot that it was made for; gone where the content was kept. */
  readonly snapshot?: Stored<VirtualMachineSnapshot>;
  /** Its volume backups, in their order. */
  readonly copies: readonly CopyView[];
  /** Whether a restore that is not finished names its snapshot. */
  readonly isRestored: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface CopyView {
  readonly backup: VolumeBackup & { readonly volumeSnapshotName: string };
  /** The one of that name, unless it is another's. */
  readonly volumeSnapshot?: Stored<VolumeSnapshot>;
  /** The VolumeSnapshotClass for it. */
  readonly snapshotClass?: string;
}
