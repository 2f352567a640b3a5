/**
 * Holds the VolumeSnapshots of a restore: from before the first claim is replaced until every new claim has its volume,
 * either the old disk or the snapshot exists, whatever users delete meanwhile, even the restore itself. Pure, except for
 * the controller that ends the hold.
 *
 *   needed-by-restore.selfsame.io/<uid>  while the restore is not finished, and while a new claim waits for its volume
 *   selfsame.io/only-copy-of             from before the disk is deleted until a restore has filled a new one; without the
 *                                        restore, as long as a protected VM has the claim
 */
import { isProtected } from '#api/protection/delete-protection.ts';
import { VIRTUAL_MACHINES } from '#api/virtual-machine/kind.ts';
import {
  listNeedingRestores,
  neededByAnnotation,
  NEEDED_BY_RESTORE_PREFIX,
  ONLY_COPY_ANNOTATION,
  onlyCopyOf,
} from '#api/virtual-machine-restore/needed-snapshots.ts';
import {
  isRestoreFinished,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { replacesClaim } from '#controllers/restore/build-claim.ts';
import { hasReplaced } from '#controllers/restore/claims.ts';
import { continueRestore, failRestore, tryChanges } from '#controllers/restore/restore-status.ts';
import { isRestoredClaim, type RestoredVolume, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import { claimKeysOfVm, VMS_BY_CLAIM } from '#controllers/shared/indexes/claim-keys.ts';
import { CLAIMS_BY_SOURCE, isAwaited, sourceSnapshotKeys } from '#controllers/shared/local-storage/snapshot-source.ts';
import { PERSISTENT_VOLUME_CLAIMS } from '#kube/core-kinds.ts';
import { isDeleting, type Stored } from '#kube/meta.ts';
import { VOLUME_SNAPSHOTS, type VolumeSnapshot } from '#kube/volume-snapshot-kinds.ts';
import { type ControllerDefinition, defineController, source } from '#runtime/controller.ts';
import type { ControllerParts } from '#runtime/controller-parts.ts';
import { createLiveReader } from '#runtime/live-reader.ts';
import { EMPTY_PLAN, type Change, type Plan } from '#runtime/plan.ts';

/** Maximum number of VolumeSnapshots in one plan; the rest follows in the next ones. */
const MAX_AT_ONCE = 50;
const RECHECK_MS = 10_000;
const CONCURRENCY = 4;
/** The name of an index: VolumeSnapshots by needingRestoreKeys. */
const BY_RESTORE = 'needed-by-restore';
/** The name of an index: VolumeSnapshots by copiedClaimKeys. */
const BY_ONLY_COPY = 'only-copy';

/** Marks the snapshots of claims that do not exist yet. Until all are marked, no claim is replaced. */
export function holdSnapshots(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  const needed = world.volumes.filter((view) => !isRestoredClaim(view, restore));
  const changes: Change[] = [];
  for (const view of needed) {
    const { snapshot, snapshotName } = view;
    const absence = snapshot === undefined ? 'does not exist' : isDeleting(snapshot) ? 'is being deleted' : undefined;
    if (snapshot === undefined || absence !== undefined) {
      const message = `Waiting for VolumeSnapshot ${snapshotName}, which ${absence ?? ''}`;
      return continueRestore(world, { reason: 'VolumeSnapshotMissing', message, requeueAfterMs: RECHECK_MS });
    }
    const forgery = findForgery(world, snapshot);
    if (forgery !== undefined) return refuseForgery(world, forgery);
    const wanted = holdOf(restore, view);
    const isHeld = Object.entries(wanted).every(([key, value]) => snapshot.metadata.annotations?.[key] === value);
    if (!isHeld) changes.push(annotate(snapshot, wanted, 'a restore needs it'));
  }
  return changes.length === 0 ? undefined : tryChanges(changes.slice(0, MAX_AT_ONCE));
}

/** Returns the annotations that hold the snapshot. A restore to new claims, or to a new VM, deletes no other copy. */
function holdOf(restore: RestoreWorld['restore'], view: RestoredVolume): Record<string, string> {
  const isOnlyCopy = restore.status?.targetUID !== undefined && replacesClaim(restore, view);
  return {
    [neededByAnnotation(restore)]: restore.metadata.name,
    ...(isOnlyCopy && { [ONLY_COPY_ANNOTATION]: view.claimName }),
  };
}

/** Ends the hold for restores that vanish, once all new disks have their data or a claim that waits for it. */
export function releaseCopies({ volumes }: RestoreWorld): Plan | undefined {
  const copies = volumes.flatMap(({ snapshot, claimName }) =>
    snapshot !== undefined && onlyCopyOf(snapshot) === claimName ? [snapshot] : [],
  );
  const changes = copies.map((snapshot) =>
    annotate(snapshot, { [ONLY_COPY_ANNOTATION]: null }, 'the restored disk has its data'),
  );
  return changes.length === 0 ? undefined : tryChanges(changes.slice(0, MAX_AT_ONCE));
}

/**
 * Returns why the VolumeSnapshot is not the one of the VM's snapshot: a user may have deleted that one and created
 * another one with its name. The content has the uid, or in contents of earlier versions only the time.
 */
function findForgery({ content }: RestoreWorld, { metadata, status }: Stored<VolumeSnapshot>): string | undefined {
  const copy = content?.status?.volumeSnapshotStatus?.find((one) => one.volumeSnapshotName === metadata.name);
  if (copy?.volumeSnapshotUID !== undefined) {
    if (copy.volumeSnapshotUID === metadata.uid) return undefined;
    return `VolumeSnapshot ${metadata.name} has the uid ${metadata.uid}, not ${copy.volumeSnapshotUID}: it is another one`;
  }
  const taken = content?.status?.creationTime;
  if (!taken || !status?.creationTime || Date.parse(status.creationTime) <= Date.parse(taken)) return undefined;
  return `VolumeSnapshot ${metadata.name} was taken at ${status.creationTime}, after the snapshot of the VM (${taken}): it is another one`;
}

/** Fails the restore. A VM with some of its disks replaced must not run, so the restore waits then. */
function refuseForgery(world: RestoreWorld, message: string): Plan {
  const reason = 'VolumeSnapshotReplaced';
  if (hasReplaced(world)) return continueRestore(world, { reason, message, requeueAfterMs: RECHECK_MS });
  return failRestore(world, reason, message);
}

function annotate(
  { metadata }: Stored<VolumeSnapshot>,
  annotations: Readonly<Record<string, string | null>>,
  why: string,
): Change {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, annotations } } } as const;
  return { do: 'patch', type: VOLUME_SNAPSHOTS, name: { name, namespace }, uid, patch, why };
}

interface NeededSnapshotWorld {
  readonly snapshot: Stored<VolumeSnapshot>;
  /** The uids of the restores that are not finished, read live. */
  readonly unfinished: ReadonlySet<string>;
  /** True if a claim without a volume has the snapshot as its source. */
  readonly isAwaited: boolean;
  /** True if a protected VM has the claim of which the snapshot may be the only copy. */
  readonly isOnlyCopy: boolean;
}

/** Removes the marks of finished and deleted restores, once no new claim waits for the data. */
export function releaseSnapshot({ snapshot, unfinished, isAwaited, isOnlyCopy }: NeededSnapshotWorld): Plan {
  if (isAwaited) return EMPTY_PLAN;
  const finished = listNeedingRestores(snapshot).filter(({ uid }) => !unfinished.has(uid));
  const keys = finished.map(({ uid }) => `${NEEDED_BY_RESTORE_PREFIX}${uid}`);
  if (onlyCopyOf(snapshot) !== undefined && unfinished.size === 0 && !isOnlyCopy) keys.push(ONLY_COPY_ANNOTATION);
  if (keys.length === 0) return EMPTY_PLAN;
  const annotations = Object.fromEntries(keys.map((key) => [key, null]));
  return { changes: [annotate(snapshot, annotations, 'no restore needs it any more')] };
}

/** Returns the key of the claim of which the snapshot may be the only copy. */
function copiedClaimKeys(snapshot: Stored<VolumeSnapshot>): string[] {
  const name = onlyCopyOf(snapshot);
  return name === undefined ? [] : [keyOf({ namespace: snapshot.metadata.namespace, name })];
}

function needingRestoreKeys(snapshot: Stored<VolumeSnapshot>): string[] {
  const { namespace } = snapshot.metadata;
  return listNeedingRestores(snapshot).map(({ name }) => keyOf({ namespace, name }));
}

/** The controller that ends the hold. It follows the snapshots, so that it also ends if the restore is gone. */
export function defineNeededSnapshots({
  client,
  informer,
}: ControllerParts): ControllerDefinition<NeededSnapshotWorld> {
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  const vms = informer(VIRTUAL_MACHINES);
  claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
  vms.addIndex(VMS_BY_CLAIM, claimKeysOfVm);
  snapshots.addIndex(BY_ONLY_COPY, copiedClaimKeys);
  snapshots.addIndex(BY_RESTORE, needingRestoreKeys);
  const readLive = createLiveReader(client);

  async function isUnfinished(
    name: { readonly namespace?: string | undefined; readonly name: string },
    uid: string,
    options: { signal: AbortSignal },
  ): Promise<boolean> {
    const isOpen = (restore: Stored<VirtualMachineRestore> | undefined) =>
      restore?.metadata.uid === uid && !isRestoreFinished(restore);
    // A restore that the cache does not show may be new.
    return isOpen(restores.get(keyOf(name))) || isOpen(await readLive(VIRTUAL_MACHINE_RESTORES, name, options));
  }

  return defineController<NeededSnapshotWorld>({
    name: 'restore-snapshots',
    type: VOLUME_SNAPSHOTS,
    concurrency: CONCURRENCY,
    sources: [
      source(snapshots),
      source(restores, (restore) => snapshots.byIndex(BY_RESTORE, objectKey(restore)).map(objectKey)),
      source(claims, sourceSnapshotKeys),
      source(vms, (vm) => claimKeysOfVm(vm).flatMap((key) => snapshots.byIndex(BY_ONLY_COPY, key).map(objectKey)), {
        part: (vm) => [isProtected(vm), isDeleting(vm), claimKeysOfVm(vm)],
      }),
    ],
    async observe(key, options) {
      const snapshot = snapshots.get(key);
      if (snapshot === undefined) return undefined;
      const { namespace } = snapshot.metadata;
      const unfinished = new Set<string>();
      for (const { name, uid } of listNeedingRestores(snapshot))
        if (await isUnfinished({ namespace, name }, uid, options)) unfinished.add(uid);
      const isOnlyCopy = copiedClaimKeys(snapshot)
        .flatMap((claim) => vms.byIndex(VMS_BY_CLAIM, claim))
        .some((vm) => isProtected(vm) && !isDeleting(vm));
      return { snapshot, unfinished, isAwaited: isAwaited(claims, objectKey(snapshot)), isOnlyCopy };
    },
    decide: releaseSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}
