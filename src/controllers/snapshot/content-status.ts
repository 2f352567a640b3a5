/** The whole status of a VirtualMachineSnapshotContent, computed from the copies of its disks. Pure. */
import type { ContentStatus } from '#api/virtual-machine-snapshot-content/kind.ts';
import { instanceUidOf } from '#controllers/snapshot/build-content.ts';
import type { ContentWorld, VolumeCopyView } from '#controllers/snapshot/content-world.ts';
import { isSnapshotInProgress } from '#controllers/snapshot/snapshot-world.ts';
import { timestamp } from '#lib/clock.ts';

type CopyStatus = NonNullable<ContentStatus['volumeSnapshotStatus']>[number];

export function buildContentStatus(world: ContentWorld): ContentStatus {
  const { content, copies, now } = world;
  const volumeSnapshotStatus = copies.flatMap((copy) => buildCopyStatus(world, copy));
  const all = volumeSnapshotStatus.length === copies.length;
  return {
    creationTime:
      content.status?.creationTime ?? (all ? latestCreationTime(volumeSnapshotStatus, timestamp(now)) : undefined),
    readyToUse: all && volumeSnapshotStatus.every(({ readyToUse }) => readyToUse === true),
    error: volumeSnapshotStatus.find(({ error }) => error !== undefined)?.error,
    volumeSnapshotStatus,
    observedGeneration: content.metadata.generation,
  };
}

/** Returns the latest creation time once all copies have one, or the current time if there is nothing to copy. */
function latestCreationTime(statuses: readonly CopyStatus[], now: string): string | undefined {
  if (statuses.length === 0) return now;
  let latest: string | undefined;
  for (const { creationTime } of statuses) {
    if (!creationTime) return undefined;
    if (latest === undefined || Date.parse(creationTime) > Date.parse(latest)) latest = creationTime;
  }
  return latest;
}

/** Returns nothing for a copy that is not requested yet. */
function buildCopyStatus(world: ContentWorld, copy: VolumeCopyView): CopyStatus[] {
  const { volumeSnapshot, backup } = copy;
  const { volumeSnapshotName } = backup;
  if (volumeSnapshot === undefined)
    return mustRequestCopy(world, copy) ? [] : [buildLostStatus(world, volumeSnapshotName)];
  const recorded = reportedCopy(world, volumeSnapshotName)?.volumeSnapshotUID;
  const { uid } = volumeSnapshot.metadata;
  if (recorded !== undefined && recorded !== uid && !mayRequestAgain(world)) {
    return [buildLostStatus(world, volumeSnapshotName, '; another one has its name')];
  }
  // Once the snapshot is complete, a VolumeSnapshot that was not recorded may be another one.
  const volumeSnapshotUID = isInProgress(world) ? uid : recorded;
  const { creationTime, readyToUse = false, error } = volumeSnapshot.status ?? {};
  const status = {
    volumeSnapshotName,
    ...(volumeSnapshotUID !== undefined && { volumeSnapshotUID }),
    creationTime,
    readyToUse,
  };
  if (error === undefined) return [status];
  const message = `VolumeSnapshot ${volumeSnapshotName} error: ${error.message ?? 'unknown'}`;
  const time = error.time ?? firstReported(world, volumeSnapshotName, message);
  return [{ ...status, error: { time, message } }];
}

function buildLostStatus(world: ContentWorld, volumeSnapshotName: string, detail = ''): CopyStatus {
  const { creationTime, volumeSnapshotUID } = reportedCopy(world, volumeSnapshotName) ?? {};
  const message = `VolumeSnapshot ${volumeSnapshotName} does not exist${detail}`;
  const time = firstReported(world, volumeSnapshotName, message);
  return {
    volumeSnapshotName,
    ...(volumeSnapshotUID !== undefined && { volumeSnapshotUID }),
    creationTime,
    readyToUse: false,
    error: { time, message },
  };
}

function isInProgress({ snapshot }: ContentWorld): boolean {
  return snapshot !== undefined && isSnapshotInProgress(snapshot);
}

/** Reports whether a lost copy is requested again. The disks of a stopped VM do not change while it is held. */
function mayRequestAgain(world: ContentWorld): boolean {
  return isInProgress(world) && instanceUidOf(world.content) === undefined;
}

/**
 * Reports whether the copy has to be requested: only while the snapshot is in progress and, for a running guest, only
 * once, because a later copy would be from another point in time.
 */
export function mustRequestCopy(world: ContentWorld, { volumeSnapshot, backup }: VolumeCopyView): boolean {
  if (volumeSnapshot !== undefined || !isInProgress(world)) return false;
  return mayRequestAgain(world) || reportedCopy(world, backup.volumeSnapshotName) === undefined;
}

function reportedCopy({ content }: ContentWorld, name: string): CopyStatus | undefined {
  return content.status?.volumeSnapshotStatus?.find(({ volumeSnapshotName }) => volumeSnapshotName === name);
}

function firstReported(world: ContentWorld, name: string, message: string): string {
  const before = reportedCopy(world, name)?.error;
  return before?.message === message && before.time ? before.time : timestamp(world.now);
}
