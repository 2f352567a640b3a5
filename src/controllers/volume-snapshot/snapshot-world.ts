/** All that a decision about one VolumeSnapshot may know, and what several of them ask of it. Pure. */
import { LOCAL_DRIVER } from '#api/names.ts';
import { isOurs } from '#controllers/storage/local-volume.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshot, VolumeSnapshotClass, VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';

export interface SnapshotWorld {
  readonly snapshot: Stored<VolumeSnapshot>;
  /** The one that it names, else the one that is made for it; missing also by a live look where it ought to be there. */
  readonly content?: Stored<VolumeSnapshotContent>;
  /** The class that it names. */
  readonly snapshotClass?: Stored<VolumeSnapshotClass>;
  /** Where it names none: those of our driver that are to be taken then. */
  readonly defaultClasses: readonly Stored<VolumeSnapshotClass>[];
  /** What it is to be taken of. */
  readonly claim?: Stored<PersistentVolumeClaim>;
  readonly volume?: Stored<PersistentVolume>;
  /** A node that can copy the volume, where every node reaches it. */
  readonly copier?: string;
  /** A claim waits to be made from it. */
  readonly isClaimed: boolean;
  /** A volume is being filled from it. */
  readonly isCopied: boolean;
  readonly now: string;
}

/** Deterministic: taking it twice takes one. */
export function contentNameFor({ metadata }: Stored<VolumeSnapshot>): string {
  return `snapcontent-${metadata.uid}`;
}

export function handleOf({ spec, status }: VolumeSnapshotContent): string | undefined {
  return status?.snapshotHandle ?? spec.source.snapshotHandle;
}

/** Undefined where nothing says it. */
function driverOf({ content, snapshotClass }: SnapshotWorld): string | undefined {
  return content?.spec.driver ?? snapshotClass?.driver;
}

/** Whether we are to take it: its class says so, or where that says nothing, the volume. */
export function isForUs(world: SnapshotWorld): boolean {
  const driver = driverOf(world);
  if (driver !== undefined) return driver === LOCAL_DRIVER;
  return world.volume !== undefined && isOurs(world.volume);
}

/** One of which nothing is left that would say whose it is holds nothing, and is let go by whoever sees it. */
export function isForOthers(world: SnapshotWorld): boolean {
  const driver = driverOf(world);
  return driver !== undefined && driver !== LOCAL_DRIVER;
}
