/**
 * Carries out the actions of decide-snapshot.ts: copies, files and status. All of them may be repeated. Copies of disks that
 * no guest has open are in take-offline-snapshot.ts.
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { SNAPSHOT_DATA_FINALIZER } from '#api/names.ts';
import { NOT_QUIESCED_ANNOTATION } from '#api/storage/snapshot-state.ts';
import { formatSnapshotHandle, parseSnapshotHandle, type SnapshotPlace } from '#api/storage/snapshot-handle.ts';
import type { Informer } from '#client/informer.ts';
import { isApiError } from '#kube/api-error.ts';
import type { PersistentVolume } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import type { CancellableWork } from '#node/storage/cancellable-work.ts';
import { hasLiveGuest } from '#node/storage/claim-users.ts';
import { instanceOfContent, type DiskWorld } from '#node/storage/decide-snapshot.ts';
import { removeNodeFinalizer } from '#node/storage/guarded-patch.ts';
import { INSTANCES_BY_UID } from '#node/guests/guest-objects.ts';
import type { DiskCopy } from '#node/hypervisor/hypervisor.ts';
import type { StorageParts } from '#node/storage/storage-parts.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';
import { errorMessage } from '#lib/error-message.ts';

export interface SnapshotParts extends StorageParts {
  readonly contents: Informer<VolumeSnapshotContent>;
  readonly own: OwnWrites<VolumeSnapshotContent>;
  /** Copies of disks that no guest has open. */
  readonly offlineCopies: CancellableWork;
  /** Statuses of complete copies that could not be reported yet, by uid. Another copy would be of a later time. */
  readonly unreportedStatuses: Map<string, SnapshotContentStatus>;
}

type Content = Stored<VolumeSnapshotContent>;
export type SnapshotContentStatus = NonNullable<VolumeSnapshotContent['status']>;

export const NS_PER_MS = 1_000_000;

/** Returns the volume that the snapshot is taken of. */
export function sourceVolume(
  { spec }: VolumeSnapshotContent,
  parts: SnapshotParts,
): Stored<PersistentVolume> | undefined {
  const volume = parts.persistentVolumes.get(spec.source.volumeHandle ?? '');
  return volume?.spec.csi?.driver === spec.driver && volume.spec.csi.volumeHandle === spec.source.volumeHandle
    ? volume
    : undefined;
}

/** Starts all copies of a set and reports their creation time. Does nothing while the guest is migrating. */
export async function startSet(instance: string, disks: readonly DiskWorld[], parts: SnapshotParts): Promise<void> {
  const { hypervisor, locks, volumes, vmis, clock } = parts;
  const atMs = await locks.run(instance, async () => {
    const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
    if (!hasLiveGuest(hypervisor, instance) || isMigrating(vmi?.status?.migrationState)) return undefined;
    const copies: DiskCopy[] = [];
    for (const { content, deviceId = '', isState } of disks) {
      if (isState === true) continue;
      const path = await volumes.makeSnapshotFile(snapshotPlaceOf(content, parts));
      copies.push({ copyId: content.metadata.name, deviceId, path });
    }
    let now = clock.now();
    if (copies.length > 0) {
      await copyQuiesced(instance, disks, parts, async () => {
        now = clock.now();
        await hypervisor.startCopies(instance, copies);
      });
    }
    for (const { content, isState } of disks) if (isState === true) await takeState(content, instance, parts);
    return now;
  });
  if (atMs === undefined) return;
  const contents = disks.map(({ content }) => content);
  await reportStarted(contents, atMs * NS_PER_MS, parts);
}

/** Covers only the start of the copies, not the copies themselves. */
const FREEZE_MS = 60_000;

/**
 * Starts the copies while the file systems of the guest are frozen, if it has a guest agent. A guest that cannot be frozen
 * is copied anyway, with an Event and an annotation.
 */
async function copyQuiesced(
  instance: string,
  disks: readonly DiskWorld[],
  parts: SnapshotParts,
  copy: () => Promise<void>,
): Promise<void> {
  const { hypervisor, vmis, events, log } = parts;
  const { agent, current, frozenUntilMs } = hypervisor.get(instance) ?? {};
  // If the user has frozen the guest, the user thaws it.
  if (agent !== 'connected' || current?.state !== 'running' || frozenUntilMs !== undefined) return copy();
  try {
    await hypervisor.freeze(instance, { timeoutMs: FREEZE_MS, why: 'snapshot' });
  } catch (err) {
    log.warn({ err, domain: instance }, 'Cannot freeze a guest for a snapshot; the snapshot is taken without a freeze');
    const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
    const message = `The file systems were not frozen for a snapshot: ${errorMessage(err)}`;
    if (vmi !== undefined) events.record(vmi, { type: 'Warning', reason: 'QuiesceTimeout', message });
    for (const { content } of disks) await markNotQuiesced(content, parts);
    return copy();
  }
  try {
    await copy();
  } finally {
    // After a failure the hypervisor thaws the guest when FREEZE_MS is over.
    await hypervisor
      .thaw(instance)
      .catch((err: unknown) => log.warn({ err, domain: instance }, 'Cannot thaw a guest; it will be tried again'));
  }
}

async function markNotQuiesced({ metadata }: Content, { client, signal }: SnapshotParts): Promise<void> {
  const { name, uid } = metadata;
  const body = { metadata: { uid, annotations: { [NOT_QUIESCED_ANNOTATION]: 'true' } } };
  await client.patch(VOLUME_SNAPSHOT_CONTENTS, { name }, { type: 'merge', body }, { signal });
}

/** Copies the persistent state. A failure is permanent, because another try would be of a later time than the disks. */
async function takeState(content: Content, domainId: string, parts: SnapshotParts): Promise<void> {
  const { volumes, signal } = parts;
  try {
    const volume = sourceVolume(content, parts);
    if (volume === undefined) throw new Error(`persistentvolume "${content.spec.source.volumeHandle}" not found`);
    await volumes.takeSnapshot(volume, snapshotPlaceOf(content, parts), { signal, state: { domainId } });
  } catch (cause) {
    signal.throwIfAborted();
    const why = errorMessage(cause);
    throw new SnapshotUnusableError(`Cannot copy the state of the guest: ${why}`, { cause });
  }
}

/** Reports that copies have started. An unknown creation time is approximated with the current time. */
export async function reportStarted(
  contents: readonly Content[],
  creationTime: number | undefined,
  parts: SnapshotParts,
): Promise<void> {
  const moment = creationTime ?? parts.clock.now() * NS_PER_MS;
  for (const content of contents) {
    const snapshotHandle = formatSnapshotHandle(snapshotPlaceOf(content, parts));
    await writeContentStatus(content, { creationTime: moment, snapshotHandle, readyToUse: false }, parts);
  }
}

export async function finishCopy(content: Content, parts: SnapshotParts): Promise<void> {
  await endCopy(content, parts);
  const restoreSize = await parts.volumes.sealSnapshot(snapshotPlaceOf(content, parts));
  await writeContentStatus(content, { readyToUse: true, restoreSize }, parts);
}

/** Reports the failure before the copies are removed: a copy that is gone without an error counts as complete. */
export async function failSet(contents: readonly Content[], message: string, parts: SnapshotParts): Promise<void> {
  for (const content of contents) await writeContentError(content, message, parts);
  for (const content of contents) await discardCopy(content, parts);
}

export async function discardCopy(content: Content, parts: SnapshotParts): Promise<void> {
  parts.unreportedStatuses.delete(content.metadata.uid);
  await endCopy(content, parts);
  for (const place of possiblePlaces(content, parts)) await parts.volumes.removeSnapshot(place);
}

export async function removeContent(content: Content, data: boolean, parts: SnapshotParts): Promise<void> {
  if (data) await discardCopy(content, parts);
  else await endCopy(content, parts);
  await removeNodeFinalizer(VOLUME_SNAPSHOT_CONTENTS, content, SNAPSHOT_DATA_FINALIZER, parts);
}

async function endCopy(content: Content, { hypervisor, locks }: SnapshotParts): Promise<void> {
  const instance = instanceOfContent(content);
  if (instance === undefined) return;
  await locks.run(instance, () => hypervisor.endCopy(instance, content.metadata.name));
}

/** Returns the place of the snapshot: shared between nodes if its volume is. */
export function snapshotPlaceOf(content: Content, parts: SnapshotParts): SnapshotPlace {
  const id = content.metadata.name;
  const reportedScope = parseSnapshotHandle(content.status?.snapshotHandle ?? '')?.scope;
  const scope = reportedScope ?? sourceVolume(content, parts)?.spec.csi?.volumeAttributes?.['scope'];
  return scope === 'shared' ? { scope, id } : { scope: 'node', node: parts.node, id };
}

/** Returns all places that may have data of the snapshot: without its volume or a reported handle, the scope is unknown. */
function possiblePlaces(content: Content, parts: SnapshotParts): readonly SnapshotPlace[] {
  const isKnown = content.status?.snapshotHandle !== undefined || sourceVolume(content, parts) !== undefined;
  const here = snapshotPlaceOf(content, parts);
  return isKnown ? [here] : [here, { scope: 'shared', id: here.id }];
}

/** Writes an error. Returns false if the status has this error. */
export async function writeContentError(content: Content, message: string, parts: SnapshotParts): Promise<boolean> {
  const { metadata, status } = parts.own.newest(content);
  if (status?.error?.message === message) return false;
  const error = { time: timestamp(parts.clock.now()), message };
  // Only to the observed revision: an earlier write of `readyToUse` may have succeeded without an answer.
  await writeContentStatus(content, { readyToUse: false, error }, parts, metadata.resourceVersion);
  return true;
}

/** Writes the status if it differs. Without `error`, removes the error of an earlier try. */
export async function writeContentStatus(
  content: Content,
  { error, ...status }: SnapshotContentStatus,
  parts: SnapshotParts,
  resourceVersion?: string,
): Promise<void> {
  const { client, contents, own, signal } = parts;
  const { name, uid } = content.metadata;
  const known: SnapshotContentStatus = own.newest(contents.get(name) ?? content).status ?? {};
  const keys = Object.keys(status) as (keyof typeof status)[];
  if (error === undefined && known.error === undefined && keys.every((key) => known[key] === status[key])) return;
  const metadata = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
  const body = { metadata, status: { ...status, error: error ?? null } };
  try {
    const patch = { type: 'merge', body } as const;
    own.record(await client.patch(VOLUME_SNAPSHOT_CONTENTS, { name }, patch, { subresource: 'status', signal }));
  } catch (failure) {
    if (!isApiError(failure, 'NotFound')) throw failure;
  }
}
