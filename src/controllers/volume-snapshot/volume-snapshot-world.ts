/** The world of one VolumeSnapshot, and facts about it that several modules need. Pure. */
import { LOCAL_DRIVER } from '#api/names.ts';
import { isLocalVolume } from '#controllers/shared/local-storage/local-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

export interface VolumeSnapshotWorld {
  readonly snapshot: Stored<VolumeSnapshot>;
  /** The content in the spec, else the one that is created for the snapshot; read live if the cache should have it. */
  readonly content?: Stored<VolumeSnapshotContent>;
  /** The class in the spec. */
  readonly snapshotClass?: Stored<VolumeSnapshotClass>;
  /** The default classes of our driver, if the spec names no class. */
  readonly defaultClasses: readonly Stored<VolumeSnapshotClass>[];
  /** The source claim and its volume. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly volume?: Stored<PersistentVolume>;
  /** A node that can copy the volume, if it is shared. */
  readonly copier?: string;
  /** True if a claim waits to be created from the snapshot. */
  readonly isClaimed: boolean;
  /** True if a volume is being filled from the snapshot. */
  readonly isCopied: boolean;
  readonly now: string;
}

/** Returns a deterministic name, so that a repeated create does not create a second content. */
export function volumeSnapshotContentName({ metadata }: Stored<VolumeSnapshot>): string {
  return `snapcontent-${metadata.uid}`;
}

export function handleOf({ spec, status }: VolumeSnapshotContent): string | undefined {
  return status?.snapshotHandle ?? spec.source.snapshotHandle;
}

/** Returns undefined if neither the content nor the class is known. */
function driverOf({ content, snapshotClass }: VolumeSnapshotWorld): string | undefined {
  return content?.spec.driver ?? snapshotClass?.driver;
}

/** Reports whether our driver takes the snapshot: by the class or, if it is unknown, by the volume. */
export function isForOurDriver(world: VolumeSnapshotWorld): boolean {
  const driver = driverOf(world);
  if (driver !== undefined) return driver === LOCAL_DRIVER;
  return world.volume !== undefined && isLocalVolume(world.volume);
}

/**
 * Reports whether the snapshot belongs to another driver; false if the driver is unknown, so that it can be deleted.
 */
export function isForOtherDriver(world: VolumeSnapshotWorld): boolean {
  const driver = driverOf(world);
  return driver !== undefined && driver !== LOCAL_DRIVER;
}
