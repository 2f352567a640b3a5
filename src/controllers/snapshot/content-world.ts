/** The world of one VirtualMachineSnapshotContent. */
import type { VirtualMachineSnapshot } from '#api/virtual-machine-snapshot/kind.ts';
import type { VirtualMachineSnapshotContent, VolumeBackup } from '#api/virtual-machine-snapshot-content/kind.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';

export interface ContentWorld {
  readonly content: Stored<VirtualMachineSnapshotContent>;
  /** The snapshot of the content; absent if it was deleted and the content was retained. */
  readonly snapshot?: Stored<VirtualMachineSnapshot>;
  /** The volume backups of the content, in their order. */
  readonly copies: readonly VolumeCopyView[];
  /** True if an unfinished restore uses the snapshot. */
  readonly hasRestore: boolean;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface VolumeCopyView {
  readonly backup: VolumeBackup & { readonly volumeSnapshotName: string };
  /** The VolumeSnapshot of that name, unless it has another owner or is of another claim. */
  readonly volumeSnapshot?: Stored<VolumeSnapshot>;
  /** Name of the VolumeSnapshotClass for the copy. */
  readonly snapshotClass?: string;
}
