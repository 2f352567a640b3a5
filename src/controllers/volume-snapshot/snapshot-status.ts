/** The status of a VolumeSnapshot: what its content says, in the units of people; or why there is none. Pure. */
import { bytesQuantity } from '#controllers/storage/snapshot-source.ts';
import type { SnapshotWorld } from '#controllers/volume-snapshot/snapshot-world.ts';
import type { Stored } from '#kube/meta.ts';
import { formatQuantity } from '#kube/quantity.ts';
import type { VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotError } from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';

export type SnapshotStatus = NonNullable<VolumeSnapshot['status']>;

const NANOS_PER_MS = 1e6;

export function statusFrom(
  content: Stored<VolumeSnapshotContent>,
  { snapshot, now }: Pick<SnapshotWorld, 'snapshot' | 'now'>,
): SnapshotStatus {
  const { creationTime, restoreSize, readyToUse, error } = content.status ?? unsaid(content, snapshot, now);
  return {
    boundVolumeSnapshotContentName: content.metadata.name,
    ...(creationTime === undefined ? {} : { creationTime: timestamp(creationTime / NANOS_PER_MS) }),
    readyToUse: readyToUse ?? false,
    ...(restoreSize === undefined ? {} : { restoreSize: formatQuantity(bytesQuantity(restoreSize)) }),
    ...(error === undefined ? {} : { error }),
  };
}

/** Agents tell of the copies that they make; of data that a person says are there, that person must. */
function unsaid(
  { metadata, spec }: Stored<VolumeSnapshotContent>,
  snapshot: VolumeSnapshot,
  now: string,
): NonNullable<VolumeSnapshotContent['status']> {
  if (spec.source.snapshotHandle === undefined) return {};
  const quoted = JSON.stringify(metadata.name);
  const message = `VolumeSnapshotContent ${quoted} was made by hand, and its status does not say yet what the data are`;
  return { error: sameError(snapshot, message, now) };
}

/** What was known of it stays. The same said again keeps its time, so that it is not written again. */
export function faultyStatus(snapshot: VolumeSnapshot, message: string, now: string): SnapshotStatus {
  return { ...snapshot.status, readyToUse: false, error: sameError(snapshot, message, now) };
}

function sameError({ status }: VolumeSnapshot, message: string, now: string): VolumeSnapshotError {
  const before = status?.error;
  return before?.message === message ? before : { time: now, message };
}

/** What people hear of a change of status. */
export function newsOf({ metadata, status: before }: Stored<VolumeSnapshot>, status: SnapshotStatus): EventNote[] {
  const name = `${metadata.namespace}/${metadata.name}`;
  const notes: EventNote[] = [];
  const { message } = status.error ?? {};
  if (message !== undefined && message !== before?.error?.message) {
    notes.push({ type: 'Warning', reason: 'SnapshotCreationFailed', message });
  }
  if (status.creationTime !== undefined && before?.creationTime === undefined) {
    const text = `Snapshot ${name} was successfully created by the CSI driver.`;
    notes.push({ type: 'Normal', reason: 'SnapshotCreated', message: text });
  }
  if (status.readyToUse === true && before?.readyToUse !== true) {
    notes.push({ type: 'Normal', reason: 'SnapshotReady', message: `Snapshot ${name} is ready to use.` });
  }
  return notes;
}
