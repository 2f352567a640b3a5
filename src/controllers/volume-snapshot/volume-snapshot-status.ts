/** The status of a VolumeSnapshot: that of its content in readable units, or the error if there is none. Pure. */
import { bytesQuantity } from '#controllers/shared/local-storage/snapshot-source.ts';
import type { VolumeSnapshotWorld } from '#controllers/volume-snapshot/volume-snapshot-world.ts';
import type { Stored } from '#kube/meta.ts';
import { formatQuantity } from '#kube/quantity.ts';
import type { VolumeSnapshot, VolumeSnapshotContent, VolumeSnapshotError } from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';

export type VolumeSnapshotStatus = NonNullable<VolumeSnapshot['status']>;

const NANOS_PER_MS = 1e6;

export function volumeSnapshotStatusFrom(
  content: Stored<VolumeSnapshotContent>,
  { snapshot, now }: Pick<VolumeSnapshotWorld, 'snapshot' | 'now'>,
): VolumeSnapshotStatus {
  const { creationTime, restoreSize, readyToUse, error } =
    content.status ?? missingContentStatus(content, snapshot, now);
  return {
    boundVolumeSnapshotContentName: content.metadata.name,
    ...(creationTime === undefined ? {} : { creationTime: timestamp(creationTime / NANOS_PER_MS) }),
    readyToUse: readyToUse ?? false,
    ...(restoreSize === undefined ? {} : { restoreSize: formatQuantity(bytesQuantity(restoreSize)) }),
    ...(error === undefined ? {} : { error }),
  };
}

/** Returns an error for a content that a user created without a status: no agent reports the state of its data. */
function missingContentStatus(
  { metadata, spec }: Stored<VolumeSnapshotContent>,
  snapshot: VolumeSnapshot,
  now: string,
): NonNullable<VolumeSnapshotContent['status']> {
  if (spec.source.snapshotHandle === undefined) return {};
  const quoted = JSON.stringify(metadata.name);
  const message = `VolumeSnapshotContent ${quoted} was created by a user and has no status; set readyToUse, creationTime and restoreSize`;
  return { error: errorSince(snapshot, message, now) };
}

/** Adds an error to the current status. A repeated error keeps its time, so that the status does not change. */
export function errorStatus(snapshot: VolumeSnapshot, message: string, now: string): VolumeSnapshotStatus {
  return { ...snapshot.status, readyToUse: false, error: errorSince(snapshot, message, now) };
}

function errorSince({ status }: VolumeSnapshot, message: string, now: string): VolumeSnapshotError {
  const before = status?.error;
  return before?.message === message ? before : { time: now, message };
}

/** Returns the Events for a change of the status. */
export function statusEvents(
  { metadata, status: before }: Stored<VolumeSnapshot>,
  status: VolumeSnapshotStatus,
): EventNote[] {
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
