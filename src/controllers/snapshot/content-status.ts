/** The whole status of a VirtualMachineSnapshotContent, computed from the copies of its disks. Pure. */
import type { ContentStatus } from '#api/virtual-machine-snapshot-content/kind.ts';
import { instanceOf } from '#controllers/snapshot/build-content.ts';
import type { ContentWorld, CopyView } from '#controllers/snapshot/content-world.ts';
import { isBeingTaken } from '#controllers/snapshot/snapshot-world.ts';
import { timestamp } from '#lib/clock.ts';

type CopyStatus = NonNullable<ContentStatus['volumeSnapshotStatus']>[number];

export function contentStatusOf(world: ContentWorld): ContentStatus {
  const { content, copies, now } = world;
  const volumeSnapshotStatus = copies.flatMap((copy) => copyStatus(world, copy));
  const all = volumeSnapshotStatus.length === copies.length;
  return {
    creationTime: content.status?.creationTime ?? (all ? momentOf(volumeSnapshotStatus, timestamp(now)) : undefined),
    readyToUse: all && volumeSnapshotStatus.every(({ readyToUse }) => readyToUse === true),
    error: volumeSnapshotStatus.find(({ error }) => error !== undefined)?.error,
    volumeSnapshotStatus,
    observedGeneration: content.metadata.generation,
  };
}

/** The latest moment of all, once each has one; now where there is nothing to copy. */
function momentOf(statuses: readonly CopyStatus[], now: string): string | undefined {
  if (statuses.length === 0) return now;
  let latest: string | undefined;
  for (const { creationTime } of statuses) {
    if (!creationTime) return undefined;
    if (latest === undefined || Date.parse(creationTime) > Date.parse(latest)) latest = creationTime;
  }
  return latest;
}

/** None for a copy that is still to be asked for. */
function copyStatus(world: ContentWorld, copy: CopyView): CopyStatus[] {
  const { volumeSnapshot, backup } = copy;
  const { volumeSnapshotName } = backup;
  if (volumeSnapshot === undefined) return isToBeMade(world, copy) ? [] : [lostStatus(world, volumeSnapshotName)];
  const { creationTime, readyToUse = false, error } = volumeSnapshot.status ?? {};
  if (error === undefined) return [{ volumeSnapshotName, creationTime, readyToUse }];
  const message = `VolumeSnapshot ${volumeSnapshotName} error: ${error.message ?? 'unknown'}`;
  const time = error.time ?? firstSaid(world, volumeSnapshotName, message);
  return [{ volumeSnapshotName, creationTime, readyToUse, error: { time, message } }];
}

function lostStatus(world: ContentWorld, volumeSnapshotName: string): CopyStatus {
  const { creationTime } = seen(world, volumeSnapshotName) ?? {};
  const message = `VolumeSnapshot ${volumeSnapshotName} does not exist`;
  const time = firstSaid(world, volumeSnapshotName, message);
  return { volumeSnapshotName, creationTime, readyToUse: false, error: { time, message } };
}

/**
 * Only while the snapshot is being taken. Where a guest runs never a second time: a copy made later than the others would
 * be of another moment. The disks of a VM that is held and does not run stay as they are.
 */
export function isToBeMade(world: ContentWorld, { volumeSnapshot, backup }: CopyView): boolean {
  const { content, snapshot } = world;
  if (volumeSnapshot !== undefined || snapshot === undefined || !isBeingTaken(snapshot)) return false;
  return instanceOf(content) === undefined || seen(world, backup.volumeSnapshotName) === undefined;
}

function seen({ content }: ContentWorld, name: string): CopyStatus | undefined {
  return content.status?.volumeSnapshotStatus?.find(({ volumeSnapshotName }) => volumeSnapshotName === name);
}

function firstSaid(world: ContentWorld, name: string, message: string): string {
  const before = seen(world, name)?.error;
  return before?.message === message && before.time ? before.time : timestamp(world.now);
}
