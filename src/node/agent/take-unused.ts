/**
 * Snapshots of disks that nobody has open: copied by the volumes, and told of when they are complete. One that cannot be
 * told of is kept, for as long as this agent lives; who comes after it copies again.
 */
import { formatSnapshotHandle } from '#api/snapshot-handle.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { claimOf, guestsOf, usersOf } from '#node/agent/claim-users.ts';
import { isOfState } from '#node/agent/decide-snapshot.ts';
import {
  NS_PER_MS,
  placeOf,
  tell,
  tellError,
  volumeOf,
  type SnapshotParts,
  type SnapshotStatus,
} from '#node/agent/snapshot-acts.ts';
import { instanceUids } from '#node/domains/observe-domain.ts';
import type { WorkResult } from '#runtime/work-queue.ts';

type Content = Stored<VolumeSnapshotContent>;

/** What goes wrong is told and tried again. */
export async function take(content: Content, parts: SnapshotParts): Promise<WorkResult> {
  const { taking, taken, signal } = parts;
  const { name, uid } = content.metadata;
  try {
    if (!taken.has(uid)) {
      const outcome = await taking.run(name, signal, async (given) => {
        taken.set(uid, await copy(content, parts, given));
      });
      // Its deletion is news, and on the queue.
      if (outcome === 'cancelled') return {};
    }
  } catch (error) {
    signal.throwIfAborted();
    return await trouble(content, error, parts);
  }
  await tell(content, taken.get(uid) ?? {}, parts);
  taken.delete(uid);
  return {};
}

/** What is to be told of it. */
async function copy(content: Content, parts: SnapshotParts, signal: AbortSignal): Promise<SnapshotStatus> {
  const { volumes, clock } = parts;
  const volume = volumeOf(content, parts);
  if (volume === undefined) throw new Error(`persistentvolume "${content.spec.source.volumeHandle}" not found`);
  throwIfInUse(volume, parts);
  const creationTime = clock.now() * NS_PER_MS;
  const place = placeOf(content, parts);
  await volumes.takeSnapshot(volume, place, { signal, ...(isOfState(content) && { state: {} }) });
  // One that has come meanwhile may have written into the middle of the copy.
  throwIfInUse(volume, parts);
  const restoreSize = await volumes.sealSnapshot(place);
  return { creationTime, snapshotHandle: formatSnapshotHandle(place), readyToUse: true, restoreSize };
}

function throwIfInUse(volume: Stored<PersistentVolume>, { pods, vmis, hypervisor }: SnapshotParts): void {
  const { name, deletionTimestamp } = volume.metadata;
  // Its data may be gone: what is made for the first guest would be taken for them.
  if (deletionTimestamp !== undefined) throw new Error(`PersistentVolume "${name}" is being deleted`);
  const claim = claimOf(volume);
  // Also one that is still to start: it would begin in the middle of the copy.
  const pod = usersOf(claim, pods).find((user) => instanceUids(user).length > 0);
  if (pod !== undefined) throw new Error(`PersistentVolume "${name}" is in use by pod "${pod.metadata.name}"`);
  // A guest outlives its pod by a moment, and its pod does not tell of all of its disks.
  const [vmi] = guestsOf(claim, { vmis, hypervisor });
  if (vmi === undefined) return;
  throw new Error(`PersistentVolume "${name}" is in use by VirtualMachineInstance "${vmi.metadata.name}"`);
}

async function trouble(content: Content, error: unknown, parts: SnapshotParts): Promise<WorkResult> {
  const message = error instanceof Error ? error.message : String(error);
  if (await tellError(content, message, parts)) {
    parts.log.warn({ err: error, snapshot: content.metadata.name }, 'a snapshot cannot be taken');
  }
  return { retry: true };
}
