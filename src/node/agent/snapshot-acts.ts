/**
 * Carries out what decide-snapshot.ts has decided: copies, files and what is told of them. All of it may be repeated.
 * Copies of disks that nobody has open are in take-unused.ts.
 */
import { isMigrating } from '#api/migration-state.ts';
import { SNAPSHOT_DATA_FINALIZER } from '#api/names.ts';
import { NOT_QUIESCED_ANNOTATION } from '#api/snapshot-state.ts';
import { formatSnapshotHandle, parseSnapshotHandle, type SnapshotPlace } from '#api/snapshot-handle.ts';
import type { VirtualMachineInstance } from '#api/virtual-machine-instance/kind.ts';
import type { Client } from '#client/client.ts';
import type { Informer } from '#client/informer.ts';
import { isApiError } from '#kube/api-error.ts';
import type { PersistentVolume, Pod } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { timestamp, type Clock } from '#lib/clock.ts';
import type { Log } from '#lib/log.ts';
import type { CancellableWork } from '#node/agent/cancellable-work.ts';
import { isAlive } from '#node/agent/claim-users.ts';
import { instanceOfContent, type DiskWorld } from '#node/agent/decide-snapshot.ts';
import { dropFinalizer } from '#node/agent/drop-finalizer.ts';
import { INSTANCES_BY_UID } from '#node/domains/observe-domain.ts';
import type { Turns } from '#node/domains/turns.ts';
import type { DiskCopy, Hypervisor } from '#node/hypervisor/hypervisor.ts';
import type { OwnWrites } from '#node/pods/own-writes.ts';
import type { EventRecorder } from '#runtime/events.ts';
import { SnapshotUnusable, type Volumes } from '#node/volumes-port.ts';

export interface SnapshotParts {
  readonly client: Client;
  readonly node: string;
  readonly contents: Informer<VolumeSnapshotContent>;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly pods: Informer<Pod>;
  readonly vmis: Informer<VirtualMachineInstance>;
  readonly hypervisor: Hypervisor;
  readonly turns: Turns;
  readonly volumes: Volumes;
  readonly own: OwnWrites<VolumeSnapshotContent>;
  /** Copies of disks that nobody has open. */
  readonly taking: CancellableWork;
  /** Those that are complete and could not be told of yet, by uid: copied again, they would show another moment. */
  readonly taken: Map<string, SnapshotStatus>;
  readonly events: Pick<EventRecorder, 'record'>;
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
}

type Content = Stored<VolumeSnapshotContent>;
export type SnapshotStatus = NonNullable<VolumeSnapshotContent['status']>;

export const NS_PER_MS = 1_000_000;

/** The volume that it is a snapshot of. */
export function volumeOf({ spec }: VolumeSnapshotContent, parts: SnapshotParts): Stored<PersistentVolume> | undefined {
  const volume = parts.persistentVolumes.get(spec.source.volumeHandle ?? '');
  return volume?.spec.csi?.driver === spec.driver && volume.spec.csi.volumeHandle === spec.source.volumeHandle
    ? volume
    : undefined;
}

/** All of them at once, and then what moment it was. Nothing begins on a guest that is on its way to another node. */
export async function startSet(instance: string, disks: readonly DiskWorld[], parts: SnapshotParts): Promise<void> {
  const { hypervisor, turns, volumes, vmis, clock } = parts;
  const atMs = await turns.take(instance, async () => {
    const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
    if (!isAlive(hypervisor, instance) || isMigrating(vmi?.status?.migrationState)) return undefined;
    const copies: DiskCopy[] = [];
    for (const { content, deviceId = '', isState } of disks) {
      if (isState === true) continue;
      const path = await volumes.makeSnapshotFile(placeOf(content, parts));
      copies.push({ copyId: content.metadata.name, deviceId, path });
    }
    let now = clock.now();
    if (copies.length > 0) {
      await quiesced(instance, disks, parts, async () => {
        now = clock.now();
        await hypervisor.startCopies(instance, copies);
      });
    }
    for (const { content, isState } of disks) if (isState === true) await takeState(content, instance, parts);
    return now;
  });
  if (atMs === undefined) return;
  const contents = disks.map(({ content }) => content);
  await tellBegun(contents, atMs * NS_PER_MS, parts);
}

/** While the moment of the copies is chosen; the copies themselves take as long as they take. */
const FREEZE_MS = 60_000;

/**
 * The place for the freeze: the guest has written down all that it had when the copies begin, where its agent does that.
 * A guest that cannot be frozen is copied all the same, and it is told.
 */
async function quiesced(
  instance: string,
  disks: readonly DiskWorld[],
  parts: SnapshotParts,
  copy: () => Promise<void>,
): Promise<void> {
  const { hypervisor, vmis, events, log } = parts;
  const { agent, current, frozenUntilMs } = hypervisor.get(instance) ?? {};
  // Whoever froze it before thaws it, too.
  if (agent !== 'connected' || current?.state !== 'running' || frozenUntilMs !== undefined) return copy();
  try {
    await hypervisor.freeze(instance, { timeoutMs: FREEZE_MS, why: 'snapshot' });
  } catch (err) {
    log.warn({ err, domain: instance }, 'Cannot freeze a guest for its snapshot');
    const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
    const message = `The file systems were not frozen for a snapshot: ${err instanceof Error ? err.message : String(err)}`;
    if (vmi !== undefined) events.record(vmi, { type: 'Warning', reason: 'QuiesceTimeout', message });
    for (const { content } of disks) await markNotQuiesced(content, parts);
    return copy();
  }
  try {
    await copy();
  } finally {
    // Where that fails now, its clock tries again.
    await hypervisor.thaw(instance).catch((err: unknown) => log.warn({ err, domain: instance }, 'Cannot thaw a guest'));
  }
}

async function markNotQuiesced({ metadata }: Content, { client, signal }: SnapshotParts): Promise<void> {
  const { name, uid } = metadata;
  const body = { metadata: { uid, annotations: { [NOT_QUIESCED_ANNOTATION]: 'true' } } };
  await client.patch(VOLUME_SNAPSHOT_CONTENTS, { name }, { type: 'merge', body }, { signal });
}

/** Trying again would show another moment than that of the disks. */
async function takeState(content: Content, domainId: string, parts: SnapshotParts): Promise<void> {
  const { volumes, signal } = parts;
  try {
    const volume = volumeOf(content, parts);
    if (volume === undefined) throw new Error(`persistentvolume "${content.spec.source.volumeHandle}" not found`);
    await volumes.takeSnapshot(volume, placeOf(content, parts), { signal, state: { domainId } });
  } catch (cause) {
    signal.throwIfAborted();
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new SnapshotUnusable(`Cannot copy the state of the guest: ${why}`, { cause });
  }
}

/** What is not known is said to be now: it was not long ago. */
export async function tellBegun(
  contents: readonly Content[],
  creationTime: number | undefined,
  parts: SnapshotParts,
): Promise<void> {
  const moment = creationTime ?? parts.clock.now() * NS_PER_MS;
  for (const content of contents) {
    const snapshotHandle = formatSnapshotHandle(placeOf(content, parts));
    await tell(content, { creationTime: moment, snapshotHandle, readyToUse: false }, parts);
  }
}

export async function finishCopy(content: Content, parts: SnapshotParts): Promise<void> {
  await endCopy(content, parts);
  const restoreSize = await parts.volumes.sealSnapshot(placeOf(content, parts));
  await tell(content, { readyToUse: true, restoreSize }, parts);
}

/** Told first: a copy that is gone without a word counts as complete. */
export async function failSet(contents: readonly Content[], message: string, parts: SnapshotParts): Promise<void> {
  for (const content of contents) await tellError(content, message, parts);
  for (const content of contents) await discard(content, parts);
}

export async function discard(content: Content, parts: SnapshotParts): Promise<void> {
  parts.taken.delete(content.metadata.uid);
  await endCopy(content, parts);
  for (const place of placesOf(content, parts)) await parts.volumes.removeSnapshot(place);
}

export async function remove(content: Content, data: boolean, parts: SnapshotParts): Promise<void> {
  if (data) await discard(content, parts);
  else await endCopy(content, parts);
  await dropFinalizer(VOLUME_SNAPSHOT_CONTENTS, content, SNAPSHOT_DATA_FINALIZER, parts);
}

async function endCopy(content: Content, { hypervisor, turns }: SnapshotParts): Promise<void> {
  const instance = instanceOfContent(content);
  if (instance === undefined) return;
  await turns.take(instance, () => hypervisor.endCopy(instance, content.metadata.name));
}

/** Beside the volume: where all reach that, all reach its snapshots. */
export function placeOf(content: Content, parts: SnapshotParts): SnapshotPlace {
  const id = content.metadata.name;
  const told = parseSnapshotHandle(content.status?.snapshotHandle ?? '')?.scope;
  const scope = told ?? volumeOf(content, parts)?.spec.csi?.volumeAttributes?.['scope'];
  return scope === 'shared' ? { scope, id } : { scope: 'node', node: parts.node, id };
}

/** Where data of it may lie: its volume may be gone, and nothing told yet. Its name is its own. */
function placesOf(content: Content, parts: SnapshotParts): readonly SnapshotPlace[] {
  const isKnown = content.status?.snapshotHandle !== undefined || volumeOf(content, parts) !== undefined;
  const here = placeOf(content, parts);
  return isKnown ? [here] : [here, { scope: 'shared', id: here.id }];
}

/** False where that was told already. */
export async function tellError(content: Content, message: string, parts: SnapshotParts): Promise<boolean> {
  const { metadata, status } = parts.own.newest(content);
  if (status?.error?.message === message) return false;
  const error = { time: timestamp(parts.clock.now()), message };
  // Only to what it was decided for: an earlier word of ours, that it is ready, may have come through without an answer.
  await tell(content, { readyToUse: false, error }, parts, metadata.resourceVersion);
  return true;
}

/** Only where it differs. Without an error, none is left of an earlier try. */
export async function tell(
  content: Content,
  { error, ...status }: SnapshotStatus,
  parts: SnapshotParts,
  resourceVersion?: string,
): Promise<void> {
  const { client, contents, own, signal } = parts;
  const { name, uid } = content.metadata;
  const known: SnapshotStatus = own.newest(contents.get(name) ?? content).status ?? {};
  const keys = Object.keys(status) as (keyof typeof status)[];
  if (error === undefined && known.error === undefined && keys.every((key) => known[key] === status[key])) return;
  const metadata = { uid, ...(resourceVersion !== undefined && { resourceVersion }) };
  const body = { metadata, status: { ...status, error: error ?? null } };
  try {
    const patch = { type: 'merge', body } as const;
    own.record(await client.patch(VOLUME_SNAPSHOT_CONTENTS, { name }, patch, { subresource: 'status', signal }));
  } catch (fault) {
    if (!isApiError(fault, 'NotFound')) throw fault;
  }
}
