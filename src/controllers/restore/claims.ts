/**
 * The claims of a restore: named, made from the volume snapshots, waited for, and in the end the VM's. A claim of another
 * is never touched, but for one that InPlace replaces: by its uid, and only while nobody runs on it. Pure.
 */
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildClaim, isInPlace } from '#controllers/restore/build-claim.ts';
import {
  controllerOf,
  hasMark,
  isDeleting,
  type RestoreWorld,
  type VolumeView,
} from '#controllers/restore/restore-world.ts';
import { ownedByVm } from '#controllers/restore/restored-identity.ts';
import { fails, goesOn, tries } from '#controllers/restore/restore-status.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import type { Stored } from '#kube/meta.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** In one plan; the rest follows. */
const MAX_AT_ONCE = 50;
const LOOK_AGAIN_MS = 10_000;

/** Written down before the first is made: from here on it is also decided whether the target is made. */
export function nameClaims(world: RestoreWorld): Plan | undefined {
  const { restore, volumes } = world;
  if (restore.status?.restores !== undefined) return undefined;
  const twice = volumes.find(({ claimName }, i) => volumes.findIndex((other) => other.claimName === claimName) !== i);
  if (twice !== undefined) {
    return fails(world, 'ClaimConflict', `two volumes are to be restored into the claim ${twice.claimName}`);
  }
  const restores = volumes.map(({ volumeName, claimName, snapshotName }) => ({
    volumeName,
    persistentVolumeClaim: claimName,
    volumeSnapshotName: snapshotName,
  }));
  return goesOn(world, { reason: 'CreatingClaims', message: 'Creating new PVCs', learned: { restores } });
}

export function makeClaims(world: RestoreWorld, content: ContentSpec): Plan | undefined {
  const { restore, volumes } = world;
  // All of them first: nothing is deleted for a restore that cannot go on.
  for (const view of volumes) {
    const fault = faultOf(world, content, view);
    if (fault !== undefined) return fails(world, 'ClaimConflict', fault);
  }
  const changes: Change[] = [];
  const missing: string[] = [];
  for (const view of volumes) {
    if (view.claim !== undefined) {
      if (!hasMark(view.claim, restore) && !isDeleting(view.claim))
        changes.push(remove(view.claim, 'it is replaced by what the snapshot holds'));
    } else if (view.snapshot === undefined || view.backup === undefined) missing.push(view.snapshotName);
    else changes.push(make(world, view, view.backup));
  }
  if (changes.length > 0) return tries(changes.slice(0, MAX_AT_ONCE));
  if (missing.length === 0) return undefined;
  const message = `Waiting for VolumeSnapshot ${missing.join(', ')}, which does not exist`;
  return goesOn(world, { reason: 'VolumeSnapshotMissing', message, requeueAfterMs: LOOK_AGAIN_MS });
}

export function awaitClaims(world: RestoreWorld): Plan | undefined {
  const waiting = world.volumes.filter((view) => !isReady(world, view)).map(({ claimName }) => claimName);
  if (waiting.length === 0) return undefined;
  return goesOn(world, {
    reason: 'WaitingForClaims',
    message: `Waiting for new PVCs: ${waiting.join(', ')}`,
    requeueAfterMs: LOOK_AGAIN_MS,
  });
}

/** Whether disks that the target had are gone already: then a restore is not given up half-way. */
export function hasReplaced({ restore, volumes }: RestoreWorld): boolean {
  if (restore.status?.restores === undefined || restore.status.targetUID === undefined) return false;
  return volumes.some(
    ({ volumeName, claim }) =>
      isInPlace(restore, volumeName) && (claim === undefined || isDeleting(claim) || hasMark(claim, restore)),
  );
}

/** From now on they go with the VM, or with nobody. */
export function handOverClaims({ restore, volumes }: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  const ownerReferences = restore.spec.volumeOwnershipPolicy === 'None' ? [] : [ownedByVm(vm)];
  const claims = own({ restore, volumes }).slice(0, MAX_AT_ONCE);
  return claims.map(({ metadata }) => {
    const { name, namespace, uid, resourceVersion } = metadata;
    const patch = { type: 'merge', body: { metadata: { resourceVersion, ownerReferences } } } as const;
    const why = 'the restored VM has it now';
    return { do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, patch, why };
  });
}

/** What a restore that failed has made and nobody got. */
export function dropClaims(world: RestoreWorld): Change[] {
  return own(world)
    .filter((claim) => !isDeleting(claim))
    .slice(0, MAX_AT_ONCE)
    .map((claim) => remove(claim, 'the restore has failed'));
}

/** Those that this restore made and has not handed over. */
function own({ restore, volumes }: Pick<RestoreWorld, 'restore' | 'volumes'>): Stored<PersistentVolumeClaim>[] {
  const claims = volumes.map(({ claim }) => claim).filter((claim) => claim !== undefined);
  return claims.filter((claim) => controllerOf(claim)?.uid === restore.metadata.uid);
}

function faultOf({ restore }: RestoreWorld, { source }: ContentSpec, view: VolumeView): string | undefined {
  const { claim, claimName, volumeName, users } = view;
  if (claim === undefined || hasMark(claim, restore)) return undefined;
  const { name } = restore.spec.target;
  const there = `the claim ${claimName} exists already and was not made by this restore`;
  if (!isInPlace(restore, volumeName) || source.virtualMachine.metadata.name !== name) return there;
  const [user] = users;
  if (user !== undefined) return `the claim ${claimName} cannot be replaced: VirtualMachine ${user} uses it, too`;
  const owner = controllerOf(claim);
  const isTargets = owner === undefined || (owner.kind === VIRTUAL_MACHINES.kind && owner.name === name);
  return isTargets ? undefined : `the claim ${claimName} cannot be replaced: it belongs to ${owner.kind} ${owner.name}`;
}

/** A claim that waits for its first consumer gets its data when the VM starts. */
function isReady({ restore }: RestoreWorld, { claim, volume, storageClass }: VolumeView): boolean {
  if (claim === undefined || isDeleting(claim) || !hasMark(claim, restore)) return false;
  if (claim.status?.phase === 'Bound') {
    return volume !== undefined && volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) !== true;
  }
  const pending = claim.status?.phase === undefined || claim.status.phase === 'Pending';
  const unplaced = !claim.spec.volumeName && volume === undefined;
  return pending && unplaced && storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}

function make({ restore }: RestoreWorld, view: VolumeView, backup: NonNullable<VolumeView['backup']>): Change {
  const why = `Created PersistentVolumeClaim ${view.claimName} from VolumeSnapshot ${view.snapshotName}`;
  return { do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object: buildClaim(restore, backup, view), why };
}

function remove({ metadata }: Stored<PersistentVolumeClaim>, why: string): Change {
  const { name, namespace, uid } = metadata;
  return { do: 'delete', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, why };
}
