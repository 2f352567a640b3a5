/**
 * Takes snapshots of disks that no guest has open, and reports them when they are complete. If the report fails, the copy is
 * kept while this agent runs; a later agent copies again.
 */
import { formatSnapshotHandle } from '#api/storage/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { claimOf, guestsUsing, podsUsing } from '#node/storage/claim-users.ts';
import { isStateSnapshot } from '#node/storage/decide-snapshot.ts';
import {
  NS_PER_MS,
  snapshotPlaceOf,
  writeContentStatus,
  writeContentError,
  sourceVolume,
  type SnapshotParts,
  type SnapshotContentStatus,
} from '#node/storage/snapshot-actions.ts';
import { instanceUids } from '#node/guests/guest-objects.ts';
import type { WorkResult } from '#runtime/work-queue.ts';
import { errorMessage } from '#lib/error-message.ts';

type Content = Stored<VolumeSnapshotContent>;

/** Takes the snapshot. A failure is reported and tried again. */
export async function takeOfflineSnapshot(content: Content, parts: SnapshotParts): Promise<WorkResult> {
  const { offlineCopies, unreportedStatuses, signal } = parts;
  const { name, uid } = content.metadata;
  try {
    if (!unreportedStatuses.has(uid)) {
      const outcome = await offlineCopies.run(name, signal, async (workSignal) => {
        unreportedStatuses.set(uid, await copy(content, parts, workSignal));
      });
      // The deletion has queued the content again.
      if (outcome === 'cancelled') return {};
    }
  } catch (error) {
    signal.throwIfAborted();
    return await reportFailure(content, error, parts);
  }
  await writeContentStatus(content, unreportedStatuses.get(uid) ?? {}, parts);
  unreportedStatuses.delete(uid);
  return {};
}

/** Copies the disk and returns the status to report. */
async function copy(content: Content, parts: SnapshotParts, signal: AbortSignal): Promise<SnapshotContentStatus> {
  const { volumes, clock } = parts;
  const volume = sourceVolume(content, parts);
  if (volume === undefined) throw new Error(`persistentvolume "${content.spec.source.volumeHandle}" not found`);
  throwIfInUse(volume, parts);
  const creationTime = clock.now() * NS_PER_MS;
  const place = snapshotPlaceOf(content, parts);
  await volumes.takeSnapshot(volume, place, { signal, ...(isStateSnapshot(content) && { state: {} }) });
  // A guest that started meanwhile may have written to the disk during the copy.
  throwIfInUse(volume, parts);
  const restoreSize = await volumes.sealSnapshot(place);
  return { creationTime, snapshotHandle: formatSnapshotHandle(place), readyToUse: true, restoreSize };
}

function throwIfInUse(volume: Stored<PersistentVolume>, { pods, vmis, hypervisor }: SnapshotParts): void {
  const { name, deletionTimestamp } = volume.metadata;
  // Its data may be removed already, and a new empty medium would be copied instead.
  if (deletionTimestamp !== undefined) throw new Error(`PersistentVolume "${name}" is being deleted`);
  const claim = claimOf(volume);
  // This includes pods whose guest has not started: it would start during the copy.
  const pod = podsUsing(claim, pods).find((user) => instanceUids(user).length > 0);
  if (pod !== undefined) throw new Error(`PersistentVolume "${name}" is in use by pod "${pod.metadata.name}"`);
  // A guest may outlive its pod for a moment, and the pod does not name hotplugged disks.
  const [vmi] = guestsUsing(claim, { vmis, hypervisor });
  if (vmi === undefined) return;
  throw new Error(`PersistentVolume "${name}" is in use by VirtualMachineInstance "${vmi.metadata.name}"`);
}

async function reportFailure(content: Content, error: unknown, parts: SnapshotParts): Promise<WorkResult> {
  const message = errorMessage(error);
  if (await writeContentError(content, message, parts)) {
    parts.log.warn({ err: error, snapshot: content.metadata.name }, 'Cannot take a snapshot; it will be tried again');
  }
  return { retry: true };
}
