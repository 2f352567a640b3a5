/**
 * The control loop over VolumeSnapshotContents that are assigned to this node: copies disks, reports the copies, and removes
 * their data when the contents are deleted. Disks that a guest has open are processed as a set. Copies of other disks may
 * take long, so they have a separate queue, and so have removals.
 */
import { stateClaimIn } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import type { ChangeListener } from '#client/informer.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { CancellableWork } from '#node/storage/cancellable-work.ts';
import { claimOf, disksOnClaim, indexClaims, hasLiveGuest, podsUsing } from '#node/storage/claim-users.ts';
import {
  decideSet,
  decideSingle,
  instanceOfContent,
  isStateSnapshot,
  isUnfinished,
  isAssignedToNode,
  snapshotSetKey,
  type DiskWorld,
  type SetWorld,
  type SnapshotAction,
} from '#node/storage/decide-snapshot.ts';
import {
  discardCopy,
  failSet,
  finishCopy,
  snapshotPlaceOf,
  removeContent,
  startSet,
  reportStarted,
  sourceVolume,
  type SnapshotParts,
} from '#node/storage/snapshot-actions.ts';
import { takeOfflineSnapshot } from '#node/storage/take-offline-snapshot.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/guests/guest-objects.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { SnapshotUnusableError } from '#node/volumes/volumes-port.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import type { StorageLoop } from '#node/storage/storage-parts.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

const BY_SET = 'set';
const BY_INSTANCE = 'snapshotInstance';
const SETS_CONCURRENCY = 4;
const SINGLES_CONCURRENCY = 2;
const REMOVALS_CONCURRENCY = 2;
const COPY_RECHECK_MS = 2000;
/** Short, because snapshots have a deadline of minutes. */
const BACKOFF = { firstMs: 500, maxMs: 10_000 };
const ENDED_PHASES: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

type Content = Stored<VolumeSnapshotContent>;
type SnapshotControllerParts = Omit<SnapshotParts, 'own' | 'offlineCopies' | 'unreportedStatuses'>;

/**
 * Volumes, pods and instances are read for the state of the guest, whose changes queue the set (hypervisor.onChange). While a
 * copy is in progress, the set is checked again after COPY_RECHECK_MS.
 */
const READS: DeclaredReads = {
  // The name of earlier versions: metrics and managedFields contain it.
  name: 'snapshot-keeper',
  followed: [VOLUME_SNAPSHOT_CONTENTS, PERSISTENT_VOLUMES, PODS, VIRTUAL_MACHINE_INSTANCES],
  rechecks: [],
};

/** Starts the loop. Call it when the informers have synced; only that of contents may sync later. */
export function startSnapshotController(options: SnapshotControllerParts): StorageLoop {
  const parts: SnapshotParts = {
    ...options,
    own: new OwnWrites(),
    offlineCopies: new CancellableWork(),
    unreportedStatuses: new Map(),
  };
  const { contents, pods, vmis, hypervisor, clock, log, node, signal } = parts;
  indexClaims(pods, vmis);
  const ifAssigned = (content: Content, value: string | undefined) =>
    value === undefined || !isAssignedToNode(content, node) ? [] : [value];
  contents.addIndex(BY_SET, (content) => ifAssigned(content, snapshotSetKey(content)));
  // Finished contents are not indexed, because changes of the guest do not affect them.
  contents.addIndex(BY_INSTANCE, (content) =>
    isUnfinished(content) ? ifAssigned(content, instanceOfContent(content)) : [],
  );

  const rules = new ReadRules(READS);
  const queue = (concurrency: number, work: (key: string) => Promise<WorkResult>) =>
    new WorkQueue({
      clock,
      concurrency,
      backoff: BACKOFF,
      async work(key) {
        await contents.waitForSync();
        return await rules.run(() => work(key));
      },
      onError: (key, err, { delayMs }) => {
        if (!signal.aborted)
          log.error({ err, snapshot: key, delayMs }, 'Cannot reconcile a snapshot; it will be tried again');
      },
    });
  const sets = queue(SETS_CONCURRENCY, (set) => reconcileSet(set, parts));
  const singles = queue(SINGLES_CONCURRENCY, (name) => reconcileSingle(name, parts));
  const removals = queue(REMOVALS_CONCURRENCY, async (name) => {
    await parts.offlineCopies.waitForEnd(name);
    return await reconcileSingle(name, parts);
  });

  const onContentChange: ChangeListener<VolumeSnapshotContent> = (name, change) => {
    const content = change.new ?? change.old;
    if (content === undefined) return;
    const isLost = change.new === undefined || !isAssignedToNode(change.new, node);
    const isDeleted = content.metadata.deletionTimestamp !== undefined;
    if (isLost || isDeleted) parts.offlineCopies.cancel(name);
    if (isLost) parts.unreportedStatuses.delete(content.metadata.uid);
    if (!isAssignedToNode(content, node)) return;
    const set = snapshotSetKey(content);
    if (set !== undefined) sets.add(set);
    // A status that this controller wrote must not bypass the backoff.
    else if (relevantFields(change.old) !== relevantFields(change.new)) (isDeleted ? removals : singles).add(name);
  };
  const unsubscribes = [
    parts.own.track(contents),
    contents.onChange(onContentChange),
    hypervisor.onChange((id) => {
      for (const content of contents.byIndex(BY_INSTANCE, id)) sets.add(snapshotSetKey(content)!);
    }),
  ];
  return {
    async idle() {
      for (const workQueue of [sets, singles, removals]) await workQueue.idle();
    },
    async stop() {
      for (const unsubscribe of unsubscribes) unsubscribe();
      await Promise.all([sets, singles, removals].map((workQueue) => workQueue.shutdown()));
    },
  };
}

function relevantFields(content: Content | undefined): string {
  const { annotations, finalizers, deletionTimestamp } = content?.metadata ?? {};
  return content === undefined ? '' : JSON.stringify([annotations, finalizers, deletionTimestamp]);
}

async function reconcileSingle(name: string, parts: SnapshotParts): Promise<WorkResult> {
  const cached = parts.contents.get(name);
  // The content may belong to a set by now, which is in the other queue.
  if (cached === undefined || !isAssignedToNode(cached, parts.node) || snapshotSetKey(cached) !== undefined) return {};
  return await actAll(decideSingle(parts.own.newest(cached)), '', parts);
}

async function reconcileSet(set: string, parts: SnapshotParts): Promise<WorkResult> {
  const contents = parts.contents.byIndex(BY_SET, set).map((content) => parts.own.newest(content));
  const [first] = contents;
  const instance = first && instanceOfContent(first);
  if (instance === undefined) return {};
  const disks = await Promise.all(contents.map((content) => observeDisk(content, instance, parts)));
  const actions = decideSet({ disks, guest: guestState(instance, parts) });
  try {
    return await actAll(actions, instance, parts);
  } catch (error) {
    // Another try would fail as well, so the set fails now instead of at the deadline.
    if (!isPermanent(error)) throw error;
    // Contents that have just become ready stay ready.
    const newest = contents.map((content) => parts.own.newest(content));
    const unfinished = newest.filter(
      (content) => content.metadata.deletionTimestamp === undefined && isUnfinished(content),
    );
    await failSet(unfinished, error.message, parts);
    return {};
  }
}

function isPermanent(error: unknown): error is Error {
  return error instanceof SnapshotUnusableError || (error instanceof HypervisorError && error.permanent);
}

async function observeDisk(content: Content, instance: string, parts: SnapshotParts): Promise<DiskWorld> {
  const volume = sourceVolume(content, parts);
  if (isStateSnapshot(content)) {
    const isTaken =
      isUnfinished(content) && (await parts.volumes.hasStateSnapshot?.(snapshotPlaceOf(content, parts))) === true;
    // A finished copy counts even if the pod is gone.
    const isState = isTaken || content.status?.creationTime !== undefined || isStateOf(instance, volume, parts);
    return { content, deviceId: undefined, copy: isTaken ? { state: 'done' } : undefined, isState };
  }
  const deviceId = volume && disksOnClaim(instance, claimOf(volume), parts.vmis)[0];
  const copy = isUnfinished(content) ? await parts.hypervisor.copyState(instance, content.metadata.name) : undefined;
  return { content, deviceId, copy };
}

/** Reports whether a pod of the guest uses the claim for its state. Any user can set the annotation of the content. */
function isStateOf(instance: string, volume: Stored<PersistentVolume> | undefined, { pods }: SnapshotParts): boolean {
  const claim = volume && claimOf(volume);
  return (
    claim !== undefined &&
    podsUsing(claim, pods).some((pod) => instanceUids(pod).includes(instance) && stateClaimIn(pod) === claim.name)
  );
}

function guestState(instance: string, { hypervisor, vmis }: SnapshotParts): SetWorld['guest'] {
  if (hasLiveGuest(hypervisor, instance)) return 'running';
  if (hypervisor.get(instance) !== undefined) return 'gone';
  const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
  const { phase = '' } = vmi?.status ?? {};
  const mayStart = vmi !== undefined && vmi.metadata.deletionTimestamp === undefined && phase !== 'Running';
  return mayStart && !ENDED_PHASES.has(phase) ? 'starting' : 'gone';
}

async function actAll(actions: readonly SnapshotAction[], instance: string, parts: SnapshotParts): Promise<WorkResult> {
  const results = [];
  for (const action of actions) results.push(await act(action, instance, parts));
  return results.find((result) => result !== undefined) ?? {};
}

async function act(action: SnapshotAction, instance: string, parts: SnapshotParts): Promise<WorkResult | void> {
  switch (action.do) {
    case 'remove':
      return await removeContent(action.content, action.data, parts);
    case 'start':
      await startSet(instance, action.disks, parts);
      return { afterMs: COPY_RECHECK_MS };
    case 'reportStarted':
      return await reportStarted(action.contents, action.creationTime, parts);
    case 'finish':
      return await finishCopy(action.content, parts);
    case 'fail':
      return await failSet(action.contents, action.message, parts);
    case 'discard':
      return await discardCopy(action.content, parts);
    case 'take':
      return await takeOfflineSnapshot(action.content, parts);
    case 'recheck':
      return { afterMs: COPY_RECHECK_MS };
  }
}
