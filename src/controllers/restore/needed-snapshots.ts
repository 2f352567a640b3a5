/**
 * Holds the VolumeSnapshots of a restore: from before the first claim is replaced until every new claim has its volume,
 * either the old disk or the snapshot exists, whatever users delete meanwhile. Pure, except for the controller that ends
 * the hold.
 */
import {
  listNeedingRestores,
  neededByAnnotation,
  NEEDED_BY_RESTORE_PREFIX,
} from '#api/virtual-machine-restore/needed-snapshots.ts';
import {
  isRestoreFinished,
  VIRTUAL_MACHINE_RESTORES,
  type VirtualMachineRestore,
} from '#api/virtual-machine-restore/kind.ts';
import { keyOf, objectKey } from '#client/object-key.ts';
import { hasReplaced } from '#controllers/restore/claims.ts';
import { continueRestore, failRestore, tryChanges } from '#controllers/restore/restore-status.ts';
import { isRestoredClaim, type RestoreWorld } from '#controllers/restore/restore-world.ts';
import { CLAIMS_BY_SOURCE, sourceSnapshotKeys } from '#controllers/shared/local-storage/snapshot-source.ts';
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

/** Marks the snapshots of claims that do not exist yet. Until all are marked, no claim is replaced. */
export function holdSnapshots(world: RestoreWorld): Plan | undefined {
  const { restore } = world;
  const needed = world.volumes.filter((view) => !isRestoredClaim(view, restore));
  const changes: Change[] = [];
  for (const { snapshot, snapshotName } of needed) {
    const absence = snapshot === undefined ? 'does not exist' : isDeleting(snapshot) ? 'is being deleted' : undefined;
    if (snapshot === undefined || absence !== undefined) {
      const message = `Waiting for VolumeSnapshot ${snapshotName}, which ${absence ?? ''}`;
      return continueRestore(world, { reason: 'VolumeSnapshotMissing', message, requeueAfterMs: RECHECK_MS });
    }
    const forgery = findForgery(world, snapshot);
    if (forgery !== undefined) return refuseForgery(world, forgery);
    if (snapshot.metadata.annotations?.[neededByAnnotation(restore)] === undefined)
      changes.push(annotate(snapshot, { [neededByAnnotation(restore)]: restore.metadata.name }, 'a restore needs it'));
  }
  return changes.length === 0 ? undefined : tryChanges(changes.slice(0, MAX_AT_ONCE));
}

/**
 * Returns why the VolumeSnapshot is not the one of the VM's snapshot: a user may have deleted that one and created
 * another one with its name. The times are in statuses, which users cannot write.
 */
function findForgery({ content }: RestoreWorld, { metadata, status }: Stored<VolumeSnapshot>): string | undefined {
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
}

/** Removes the marks of finished and deleted restores, once no new claim waits for the data. */
function releaseSnapshot({ snapshot, unfinished, isAwaited }: NeededSnapshotWorld): Plan {
  const finished = listNeedingRestores(snapshot).filter(({ uid }) => !unfinished.has(uid));
  if (finished.length === 0 || isAwaited) return EMPTY_PLAN;
  const annotations = Object.fromEntries(finished.map(({ uid }) => [`${NEEDED_BY_RESTORE_PREFIX}${uid}`, null]));
  return { changes: [annotate(snapshot, annotations, 'no restore needs it any more')] };
}

/** The controller that ends the hold. It follows the snapshots, so that it also ends if the restore is gone. */
export function defineNeededSnapshots({
  client,
  informer,
}: ControllerParts): ControllerDefinition<NeededSnapshotWorld> {
  const snapshots = informer(VOLUME_SNAPSHOTS);
  const restores = informer(VIRTUAL_MACHINE_RESTORES);
  const claims = informer(PERSISTENT_VOLUME_CLAIMS);
  claims.addIndex(CLAIMS_BY_SOURCE, sourceSnapshotKeys);
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
      source(restores, ({ metadata: { namespace }, status }) =>
        (status?.restores ?? []).map(({ volumeSnapshotName: name }) => keyOf({ namespace, name })),
      ),
      source(claims, sourceSnapshotKeys),
    ],
    async observe(key, options) {
      const snapshot = snapshots.get(key);
      if (snapshot === undefined) return undefined;
      const { namespace } = snapshot.metadata;
      const unfinished = new Set<string>();
      for (const { name, uid } of listNeedingRestores(snapshot))
        if (await isUnfinished({ namespace, name }, uid, options)) unfinished.add(uid);
      const isAwaited = claims
        .byIndex(CLAIMS_BY_SOURCE, objectKey(snapshot))
        .some((claim) => !claim.spec.volumeName && !isDeleting(claim));
      return { snapshot, unfinished, isAwaited };
    },
    decide: releaseSnapshot,
    subject: ({ snapshot }) => snapshot,
  });
}
