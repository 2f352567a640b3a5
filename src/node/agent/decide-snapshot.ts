/**
 * What is to be done here for snapshots of volumes. Pure.
 *
 * Disks that a guest has open are copied as a set, at one and the same moment:
 *
 *   all of the set are known ─start─► copying ─────► done ─finish─► ready        the guest ended, or a copy failed:
 *                              (creationTime)              (readyToUse)          all of them fail, for good
 *
 * The moment is told before anything is awaited, and a copy is let go of only after it was told to be done or failed: so
 * whoever comes after a crash knows how far it got. Of a disk that nobody has open, the copy is taken at once (`take`).
 *
 * The state of the VM belongs to the set, too: it is copied by us, right after the disks have begun, and is complete at
 * once.
 */
import {
  LOCAL_DRIVER,
  SNAPSHOT_DATA_FINALIZER,
  SNAPSHOT_INSTANCE_ANNOTATION,
  SNAPSHOT_NODE_ANNOTATION,
  SNAPSHOT_SET_ANNOTATION,
  SNAPSHOT_SET_SIZE_ANNOTATION,
} from '#api/names.ts';
import { SNAPSHOT_STATE_ANNOTATION } from '#api/snapshot-state.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import type { VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import type { CopyState } from '#node/hypervisor/hypervisor.ts';

type Content = Stored<VolumeSnapshotContent>;

export interface DiskWorld {
  readonly content: Content;
  /** The disk of the guest; undefined where it has none on that volume. */
  readonly deviceId: string | undefined;
  /** It is no disk, but the volume in which the guest keeps its state. */
  readonly isState?: boolean;
  readonly copy: CopyState | undefined;
}

export interface SetWorld {
  readonly disks: readonly DiskWorld[];
  /** `starting`: it may still come to run. */
  readonly guest: 'running' | 'starting' | 'gone';
}

export type SnapshotAction =
  /** Nobody wants it any more; the data goes with it, or stays where that is asked for. */
  | { readonly do: 'remove'; readonly content: Content; readonly data: boolean }
  | { readonly do: 'start'; readonly disks: readonly DiskWorld[] }
  /** They have begun already; when is told by one of them, or not known. */
  | { readonly do: 'tell'; readonly contents: readonly Content[]; readonly creationTime: number | undefined }
  | { readonly do: 'finish'; readonly content: Content }
  | { readonly do: 'fail'; readonly contents: readonly Content[]; readonly message: string }
  /** What it left behind goes. */
  | { readonly do: 'discard'; readonly content: Content }
  | { readonly do: 'take'; readonly content: Content }
  | { readonly do: 'lookAgain' };

export const GUEST_ENDED = 'the guest ended before its disks were copied';

/** Whether this node makes the copy. */
export function isOurs({ metadata, spec }: VolumeSnapshotContent, node: string): boolean {
  return (
    spec.driver === LOCAL_DRIVER &&
    spec.source.volumeHandle !== undefined &&
    metadata.annotations?.[SNAPSHOT_NODE_ANNOTATION] === node
  );
}

/** Whether it is of the state of a VM, and of no disk. */
export function isOfState({ metadata }: VolumeSnapshotContent): boolean {
  return metadata.annotations?.[SNAPSHOT_STATE_ANNOTATION] === 'true';
}

/** The uid of the guest that has the disk open. */
export function instanceOfContent({ metadata }: VolumeSnapshotContent): string | undefined {
  return metadata.annotations?.[SNAPSHOT_INSTANCE_ANNOTATION] || undefined;
}

/**
 * The same for all that are copied at one moment; undefined where nobody has the disk open. People write what it is
 * made of, so that none of another namespace gets into it.
 */
export function setOf(content: VolumeSnapshotContent): string | undefined {
  const instance = instanceOfContent(content);
  const { annotations, name } = content.metadata;
  const { namespace = '' } = content.spec.volumeSnapshotRef;
  return instance && `${namespace}/${instance}/${annotations?.[SNAPSHOT_SET_ANNOTATION] ?? name}`;
}

/** Of a disk that nobody has open. */
export function decideSingle(content: Content): readonly SnapshotAction[] {
  if (isDeleting(content)) return removal(content);
  return content.status?.readyToUse === true ? [] : [{ do: 'take', content }];
}

/** Of all disks of one set. */
export function decideSet({ disks, guest }: SetWorld): readonly SnapshotAction[] {
  const wanted = disks.filter(({ content }) => !isDeleting(content));
  return [
    ...disks.flatMap(({ content }) => (isDeleting(content) ? removal(content) : [])),
    ...wanted.flatMap(({ content }) => (hasFailed(content) ? [{ do: 'discard', content } as const] : [])),
    ...decideWanted(wanted, guest),
  ];
}

function decideWanted(wanted: readonly DiskWorld[], guest: SetWorld['guest']): readonly SnapshotAction[] {
  const open = wanted.filter(({ content }) => isOpen(content));
  if (open.length === 0) return [];
  const message = failureOf(wanted, open, guest);
  if (message !== undefined) return [{ do: 'fail', contents: open.map(({ content }) => content), message }];

  const first = open.find((disk) => !hasBegun(disk));
  if (first !== undefined) {
    if (guest === 'starting') return [{ do: 'lookAgain' }];
    // Each that is still missing makes news of itself.
    return wanted.length < sizeOf(first.content) ? [] : [{ do: 'start', disks: open }];
  }
  const untold = open.filter(({ content }) => content.status?.creationTime === undefined);
  if (untold.length > 0) {
    const told = wanted.find(({ content }) => content.status?.creationTime !== undefined);
    const creationTime = told?.content.status?.creationTime;
    return [{ do: 'tell', contents: untold.map(({ content }) => content), creationTime }, { do: 'lookAgain' }];
  }
  return open.map(({ content, copy }) => (copy?.state === 'copying' ? { do: 'lookAgain' } : { do: 'finish', content }));
}

function failureOf(
  wanted: readonly DiskWorld[],
  open: readonly DiskWorld[],
  guest: SetWorld['guest'],
): string | undefined {
  for (const { content, copy } of wanted) {
    if (hasFailed(content)) return content.status?.error?.message ?? '';
    if (copy?.state === 'failed') return copy.message;
  }
  // Of one that was let go of we know that it was complete, but not whether that came to the disk.
  const ended = (disk: DiskWorld) =>
    disk.copy === undefined &&
    (disk.isState === true ? guest === 'gone' && !hasBegun(disk) : guest === 'gone' || hasBegun(disk));
  if (guest !== 'running' && open.some(ended)) return GUEST_ENDED;
  const begun = wanted.filter(hasBegun);
  const waiting = open.filter((disk) => !hasBegun(disk));
  if (begun.length > 0 && waiting.length > 0) return 'the moment at which the other disks were copied has passed';
  if (guest === 'running' && waiting.some(({ deviceId, isState }) => deviceId === undefined && isState !== true)) {
    return 'the guest has no disk on this volume';
  }
  return undefined;
}

/** Neither ready nor failed. */
export function isOpen(content: Content): boolean {
  return content.status?.readyToUse !== true && !hasFailed(content);
}

function hasBegun({ content, copy }: DiskWorld): boolean {
  return copy !== undefined || content.status?.creationTime !== undefined;
}

function hasFailed({ status }: Content): boolean {
  return status?.error !== undefined;
}

function removal(content: Content): readonly SnapshotAction[] {
  if (!(content.metadata.finalizers ?? []).includes(SNAPSHOT_DATA_FINALIZER)) return [];
  // What never became a snapshot is worth nothing to anybody.
  const data = content.spec.deletionPolicy !== 'Retain' || content.status?.readyToUse !== true;
  return [{ do: 'remove', content, data }];
}

/** What cannot be read is never complete. */
function sizeOf({ metadata }: Content): number {
  const size = metadata.annotations?.[SNAPSHOT_SET_SIZE_ANNOTATION] ?? '1';
  return /^\d{1,6}$/.test(size) ? Number(size) : Infinity;
}
