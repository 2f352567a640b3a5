/**
 * The loop over VolumeSnapshotContents that name this node: makes the copies, tells of them, and removes their data when
 * they are deleted. Sets of disks that a guest has open are worked on as one. Copies of disks that nobody has open may
 * take long: neither sets nor removals wait for those of others.
 */
import { stateClaimIn } from '#api/persistent-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { PERSISTENT_VOLUMES, type PersistentVolume, PODS } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOT_CONTENTS, type VolumeSnapshotContent } from '#kube/volume-snapshot-kinds.ts';
import { CancellableWork } from '#node/agent/cancellable-work.ts';
import { claimOf, disksOf, indexClaims, isAlive, usersOf } from '#node/agent/claim-users.ts';
import {
  decideSet,
  decideSingle,
  instanceOfContent,
  isOfState,
  isOpen,
  isOurs,
  setOf,
  type DiskWorld,
  type SetWorld,
  type SnapshotAction,
} from '#node/agent/decide-snapshot.ts';
import {
  discard,
  failSet,
  finishCopy,
  placeOf,
  remove,
  startSet,
  tellBegun,
  volumeOf,
  type SnapshotParts,
} from '#node/agent/snapshot-acts.ts';
import { take } from '#node/agent/take-unused.ts';
import { INSTANCES_BY_UID, instanceUids } from '#node/domains/observe-domain.ts';
import { HypervisorError } from '#node/hypervisor/hypervisor.ts';
import { OwnWrites } from '#node/pods/own-writes.ts';
import { SnapshotUnusable } from '#node/volumes-port.ts';
import { type DeclaredReads, ReadRules } from '#runtime/decision-reads.ts';
import { WorkQueue, type WorkResult } from '#runtime/work-queue.ts';

const BY_SET = 'set';
const BY_INSTANCE = 'snapshotInstance';
const SETS_CONCURRENCY = 4;
const SINGLES_CONCURRENCY = 2;
const REMOVALS_CONCURRENCY = 2;
const COPYING_MS = 2000;
/** Somebody waits for it, with a deadline of minutes. */
const BACKOFF = { firstMs: 500, maxMs: 10_000 };
const ENDED: ReadonlySet<string> = new Set(['Succeeded', 'Failed']);

type Content = Stored<VolumeSnapshotContent>;
export type SnapshotKeeperParts = Omit<SnapshotParts, 'own' | 'taking' | 'taken'>;

/**
 * Volumes, pods and instances are read for what they say of the guest, whose changes wake the set (hypervisor.onChange).
 * While something is under way the set is looked at again after COPYING_MS.
 */
const READS: DeclaredReads = {
  name: 'snapshot-keeper',
  followed: [VOLUME_SNAPSHOT_CONTENTS, PERSISTENT_VOLUMES, PODS, VIRTUAL_MACHINE_INSTANCES],
  rechecks: [],
};

/** To be called when the other informers have synced; that of contents may come later. */
export function startSnapshotKeeper(given: SnapshotKeeperParts): { idle(): Promise<void>; stop(): Promise<void> } {
  const parts: SnapshotParts = { ...given, own: new OwnWrites(), taking: new CancellableWork(), taken: new Map() };
  const { contents, pods, vmis, hypervisor, clock, log, node, signal } = parts;
  indexClaims(pods, vmis);
  const onlyOurs = (content: Content, value: string | undefined) =>
    value === undefined || !isOurs(content, node) ? [] : [value];
  contents.addIndex(BY_SET, (content) => onlyOurs(content, setOf(content)));
  // What is done with stays for as long as anybody wants the snapshot; the guest's changes do not concern it.
  contents.addIndex(BY_INSTANCE, (content) => (isOpen(content) ? onlyOurs(content, instanceOfContent(content)) : []));

  const rules = new ReadRules(READS);
  const queue = (concurrency: number, work: (key: string) => Promise<WorkResult>) =>
    new WorkQueue({
      clock,
      concurrency,
      backoff: BACKOFF,
      async work(key) {
        await contents.synced();
        return await rules.run(() => work(key));
      },
      onError: (key, err, { delayMs }) => {
        if (!signal.aborted) log.error({ err, snapshot: key, delayMs }, 'Cannot tend a snapshot; trying again');
      },
    });
  const sets = queue(SETS_CONCURRENCY, (set) => keepSet(set, parts));
  const singles = queue(SINGLES_CONCURRENCY, (name) => keepSingle(name, parts));
  const removals = queue(REMOVALS_CONCURRENCY, async (name) => {
    await parts.taking.ended(name);
    return await keepSingle(name, parts);
  });

  const leaveOwn = parts.own.track(contents);
  const leaveContents = contents.onChange((name, change) => {
    const content = change.new ?? change.old;
    if (content === undefined) return;
    const isLost = change.new === undefined || !isOurs(change.new, node);
    const isDeleted = content.metadata.deletionTimestamp !== undefined;
    if (isLost || isDeleted) parts.taking.cancel(name);
    if (isLost) parts.taken.delete(content.metadata.uid);
    if (!isOurs(content, node)) return;
    const set = setOf(content);
    if (set !== undefined) sets.add(set);
    // What we told ourselves is no reason to try again before the time.
    else if (gist(change.old) !== gist(change.new)) (isDeleted ? removals : singles).add(name);
  });
  const leaveHypervisor = hypervisor.onChange((id) => {
    for (const content of contents.byIndex(BY_INSTANCE, id)) sets.add(setOf(content)!);
  });
  return {
    async idle() {
      for (const one of [sets, singles, removals]) await one.idle();
    },
    async stop() {
      for (const leave of [leaveOwn, leaveContents, leaveHypervisor]) leave();
      await Promise.all([sets, singles, removals].map((one) => one.shutdown()));
    },
  };
}

function gist(content: Content | undefined): string {
  const { annotations, finalizers, deletionTimestamp } = content?.metadata ?? {};
  return content === undefined ? '' : JSON.stringify([annotations, finalizers, deletionTimestamp]);
}

async function keepSingle(name: string, parts: SnapshotParts): Promise<WorkResult> {
  const cached = parts.contents.get(name);
  // What its annotations say may have changed: the other queue has it then.
  if (cached === undefined || !isOurs(cached, parts.node) || setOf(cached) !== undefined) return {};
  return await actAll(decideSingle(parts.own.newest(cached)), '', parts);
}

async function keepSet(set: string, parts: SnapshotParts): Promise<WorkResult> {
  const contents = parts.contents.byIndex(BY_SET, set).map((content) => parts.own.newest(content));
  const [first] = contents;
  const instance = first && instanceOfContent(first);
  if (instance === undefined) return {};
  const disks = await Promise.all(contents.map((content) => observe(content, instance, parts)));
  const actions = decideSet({ disks, guest: guestOf(instance, parts) });
  try {
    return await actAll(actions, instance, parts);
  } catch (error) {
    // Trying again will fail again; nobody is to wait for the deadline.
    if (!isFinal(error)) throw error;
    // Those that were told to be ready a moment ago stay so.
    const newest = contents.map((content) => parts.own.newest(content));
    const open = newest.filter((one) => one.metadata.deletionTimestamp === undefined && isOpen(one));
    await failSet(open, error.message, parts);
    return {};
  }
}

function isFinal(error: unknown): error is Error {
  return error instanceof SnapshotUnusable || (error instanceof HypervisorError && error.permanent);
}

async function observe(content: Content, instance: string, parts: SnapshotParts): Promise<DiskWorld> {
  const volume = volumeOf(content, parts);
  if (isOfState(content)) {
    const isTaken = isOpen(content) && (await parts.volumes.hasStateSnapshot?.(placeOf(content, parts))) === true;
    // Then it is complete, whatever has become of the pod.
    const isState = isTaken || content.status?.creationTime !== undefined || isStateOf(instance, volume, parts);
    return { content, deviceId: undefined, copy: isTaken ? { state: 'done' } : undefined, isState };
  }
  const deviceId = volume && disksOf(instance, claimOf(volume), parts.vmis)[0];
  const copy = isOpen(content) ? await parts.hypervisor.copyState(instance, content.metadata.name) : undefined;
  return { content, deviceId, copy };
}

/** Annotations are anybody's to write: only where a pod of that guest has the claim for its state. */
function isStateOf(instance: string, volume: Stored<PersistentVolume> | undefined, { pods }: SnapshotParts): boolean {
  const claim = volume && claimOf(volume);
  return (
    claim !== undefined &&
    usersOf(claim, pods).some((pod) => instanceUids(pod).includes(instance) && stateClaimIn(pod) === claim.name)
  );
}

function guestOf(instance: string, { hypervisor, vmis }: SnapshotParts): SetWorld['guest'] {
  if (isAlive(hypervisor, instance)) return 'running';
  if (hypervisor.get(instance) !== undefined) return 'gone';
  const [vmi] = vmis.byIndex(INSTANCES_BY_UID, instance);
  const { phase = '' } = vmi?.status ?? {};
  const mayStart = vmi !== undefined && vmi.metadata.deletionTimestamp === undefined && phase !== 'Running';
  return mayStart && !ENDED.has(phase) ? 'starting' : 'gone';
}

async function actAll(actions: readonly SnapshotAction[], instance: string, parts: SnapshotParts): Promise<WorkResult> {
  const results = [];
  for (const action of actions) results.push(await act(action, instance, parts));
  return results.find((result) => result !== undefined) ?? {};
}

async function act(action: SnapshotAction, instance: string, parts: SnapshotParts): Promise<WorkResult | void> {
  switch (action.do) {
    case 'remove':
      return await remove(action.content, action.data, parts);
    case 'start':
      await startSet(instance, action.disks, parts);
      return { afterMs: COPYING_MS };
    case 'tell':
      return await tellBegun(action.contents, action.creationTime, parts);
    case 'finish':
      return await finishCopy(action.content, parts);
    case 'fail':
      return await failSet(action.contents, action.message, parts);
    case 'discard':
      return await discard(action.content, parts);
    case 'take':
      return await take(action.content, parts);
    case 'lookAgain':
      return { afterMs: COPYING_MS };
  }
}
