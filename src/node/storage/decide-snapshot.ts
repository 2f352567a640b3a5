/**
 * Decides about the snapshots of volumes on this node. Pure.
 *
 * Disks that a guest has open are copied as a set, as of the same point in time:
 *
 *   set is complete ─start─► copying ─────► done ─finish─► ready        the guest ended, or a copy failed:
 *                       (creationTime)            (readyToUse)          the whole set fails permanently
 *
 * The creation time is reported before any copy is awaited, and a copy is forgotten only after its result was reported. So
 * an agent that starts after a crash knows the progress. A disk that no guest has open is copied at once (`take`).
 *
 * The persistent state of the VM belongs to the set, too: the agent copies it right after the copies of the disks have
 * started, in one step.
 */
import {
  LOCAL_DRIVER,
  SNAPSHOT_DATA_FINALIZER,
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_NODE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
} from '#api/names.ts';
import { SNAPSHOT_STATE_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { CopyState } from '#node/hypervisor/hypervisor.ts';

type Content = Stored<VolumeSnapshotContent>;

export interface DiskWorld {
  readonly content: Content;
  /** Disk of the guest on the volume, if it has one. */
  readonly deviceId: string | undefined;
  /** True for the volume with the persistent state of the guest. */
  readonly isState?: boolean;
  readonly copy: CopyState | undefined;
}

export interface SetWorld {
  readonly disks: readonly DiskWorld[];
  /** `starting` means that the guest may still start. */
  readonly guest: 'running' | 'starting' | 'gone';
}

export type SnapshotAction =
  /** Removes a deleted content, with or without its data. */
  | { readonly do: 'remove'; readonly content: Content; readonly data: boolean }
  | { readonly do: 'start'; readonly disks: readonly DiskWorld[] }
  /** Reports copies that have started. The creation time may be unknown. */
  | { readonly do: 'reportStarted'; readonly contents: readonly Content[]; readonly creationTime: number | undefined }
  | { readonly do: 'finish'; readonly content: Content }
  | { readonly do: 'fail'; readonly contents: readonly Content[]; readonly message: string }
  /** Removes the data of a failed copy. */
  | { readonly do: 'discard'; readonly content: Content }
  | { readonly do: 'take'; readonly content: Content }
  | { readonly do: 'recheck' };

export const GUEST_ENDED = 'the guest ended before its disks were copied';

/** Reports whether this node has to take the snapshot. */
export function isAssignedToNode({ metadata, spec }: VolumeSnapshotContent, node: string): boolean {
  return (
    spec.driver === LOCAL_DRIVER &&
    spec.source.volumeHandle !== undefined &&
    metadata.annotations?.[SNAPSHOT_NODE_ANNOTATION] === node
  );
}

/** Reports whether it is a snapshot of a VM's persistent state instead of a disk. */
export function isStateSnapshot({ metadata }: VolumeSnapshotContent): boolean {
  return metadata.annotations?.[SNAPSHOT_STATE_ANNOTATION] === 'true';
}

/** Returns the uid of the instance that has the disk open. */
export function instanceOfContent({ metadata }: VolumeSnapshotContent): string | undefined {
  return metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION] || undefined;
}

/**
 * Returns the key of the snapshot set, or undefined if no guest has the disk open. The key contains the namespace, because
 * users can set the annotations and must not add disks of another namespace to a set.
 */
export function snapshotSetKey(content: VolumeSnapshotContent): string | undefined {
  const instance = instanceOfContent(content);
  const { annotations, name } = content.metadata;
  const { namespace = '' } = content.spec.volumeSnapshotRef;
  return instance && `${namespace}/${instance}/${annotations?.[SNAPSHOT_SET_ANNOTATION] ?? name}`;
}

/** Decides about the snapshot of a disk that no guest has open. */
export function decideSingle(content: Content): readonly SnapshotAction[] {
  if (isDeleting(content)) return decideRemoval(content);
  return content.status?.readyToUse === true ? [] : [{ do: 'take', content }];
}

/** Decides about all disks of one set. */
export function decideSet({ disks, guest }: SetWorld): readonly SnapshotAction[] {
  const wanted = disks.filter(({ content }) => !isDeleting(content));
  return [
    ...disks.flatMap(({ content }) => (isDeleting(content) ? decideRemoval(content) : [])),
    ...wanted.flatMap(({ content }) => (hasFailed(content) ? [{ do: 'discard', content } as const] : [])),
    ...decideWanted(wanted, guest),
  ];
}

function decideWanted(wanted: readonly DiskWorld[], guest: SetWorld['guest']): readonly SnapshotAction[] {
  const unfinished = wanted.filter(({ content }) => isUnfinished(content));
  if (unfinished.length === 0) return [];
  const message = findFailure(wanted, unfinished, guest);
  if (message !== undefined) return [{ do: 'fail', contents: unfinished.map(({ content }) => content), message }];

  const first = unfinished.find((disk) => !hasStarted(disk));
  if (first !== undefined) {
    if (guest === 'starting') return [{ do: 'recheck' }];
    // The change of a content that is still missing queues the set again.
    return wanted.length < setSize(first.content) ? [] : [{ do: 'start', disks: unfinished }];
  }
  const unreported = unfinished.filter(({ content }) => content.status?.creationTime === undefined);
  if (unreported.length > 0) {
    const reported = wanted.find(({ content }) => content.status?.creationTime !== undefined);
    const creationTime = reported?.content.status?.creationTime;
    return [
      { do: 'reportStarted', contents: unreported.map(({ content }) => content), creationTime },
      { do: 'recheck' },
    ];
  }
  return unfinished.map(({ content, copy }) =>
    copy?.state === 'copying' ? { do: 'recheck' } : { do: 'finish', content },
  );
}

function findFailure(
  wanted: readonly DiskWorld[],
  unfinished: readonly DiskWorld[],
  guest: SetWorld['guest'],
): string | undefined {
  for (const { content, copy } of wanted) {
    if (hasFailed(content)) return content.status?.error?.message ?? '';
    if (copy?.state === 'failed') return copy.message;
  }
  // A copy that the hypervisor has forgotten was complete, but may not have reached the disk.
  const ended = (disk: DiskWorld) =>
    disk.copy === undefined &&
    (disk.isState === true ? guest === 'gone' && !hasStarted(disk) : guest === 'gone' || hasStarted(disk));
  if (guest !== 'running' && unfinished.some(ended)) return GUEST_ENDED;
  const started = wanted.filter(hasStarted);
  const waiting = unfinished.filter((disk) => !hasStarted(disk));
  if (started.length > 0 && waiting.length > 0) return 'the other disks of the snapshot were copied at an earlier time';
  if (guest === 'running' && waiting.some(({ deviceId, isState }) => deviceId === undefined && isState !== true)) {
    return 'the guest has no disk on this volume';
  }
  return undefined;
}

/** Reports whether the content is neither ready nor failed. */
export function isUnfinished(content: Content): boolean {
  return content.status?.readyToUse !== true && !hasFailed(content);
}

function hasStarted({ content, copy }: DiskWorld): boolean {
  return copy !== undefined || content.status?.creationTime !== undefined;
}

function hasFailed({ status }: Content): boolean {
  return status?.error !== undefined;
}

function decideRemoval(content: Content): readonly SnapshotAction[] {
  if (!(content.metadata.finalizers ?? []).includes(SNAPSHOT_DATA_FINALIZER)) return [];
  // The data of an unfinished snapshot is useless, so it is removed in spite of `Retain`.
  const data = content.spec.deletionPolicy !== 'Retain' || content.status?.readyToUse !== true;
  return [{ do: 'remove', content, data }];
}

/** Returns the size of the set; an invalid size means that the set never becomes complete. */
function setSize({ metadata }: Content): number {
  const size = metadata.annotations?.[SNAPSHOT_SET_SIZE_ANNOTATION] ?? '1';
  return /^\d{1,6}$/.test(size) ? Number(size) : Infinity;
}
