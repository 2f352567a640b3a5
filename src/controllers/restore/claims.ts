/**
 * The claims of a restore: names them, creates them from the volume snapshots, waits for them and hands them over to
 * the VM. Other claims are never touched, except those that InPlace replaces: by uid, only while no guest uses them, and
 * only after they are marked as replaced by this restore, which no user can do. Pure.
 */
import { claimNamesOf } from '#api/storage/claim-names.ts';
import { PROTECTED_VMS_ANNOTATION } from '#api/protection/delete-protection.ts';
import { RESTORED_BY_ANNOTATION, VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { REPLACED_BY_ANNOTATION, replacedBy } from '#api/storage/persistent-state.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { vmOwnerReference } from '#api/virtual-machine/owner.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildRestoredClaim, replacesClaim } from '#controllers/restore/build-claim.ts';
import {
  isMarkedBy,
  isRestoredClaim,
  type RestoreWorld,
  type RestoredVolume,
} from '#controllers/restore/restore-world.ts';
import { failRestore, continueRestore, tryChanges } from '#controllers/restore/restore-status.ts';
import { handOverRestoredState, isStateClaim } from '#controllers/restore/restored-state.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerOf, controllerUid, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

/** Maximum number of claims in one plan; the rest follows in the next ones. */
const MAX_AT_ONCE = 50;
const RECHECK_MS = 10_000;

/** Records the names before the first claim is created. This also fixes whether the restore creates the target. */
export function nameClaims(world: RestoreWorld): Plan | undefined {
  const { restore, volumes } = world;
  if (restore.status?.restores !== undefined) return undefined;
  const duplicate = volumes.find(
    ({ claimName }, i) => volumes.findIndex((other) => other.claimName === claimName) !== i,
  );
  if (duplicate !== undefined) {
    return failRestore(
      world,
      'ClaimConflict',
      `two volumes would be restored into PersistentVolumeClaim ${duplicate.claimName}`,
    );
  }
  const restores = volumes.map(({ volumeName, claimName, snapshotName }) => ({
    volumeName,
    persistentVolumeClaim: claimName,
    volumeSnapshotName: snapshotName,
  }));
  return continueRestore(world, {
    reason: 'CreatingClaims',
    message: 'Creating new PVCs',
    newStatus: { restores, marksClaims: true },
  });
}

/** Checks all claims before anything is done, so that a restore that fails stops no guest and deletes nothing. */
export function refuseClaims(world: RestoreWorld): Plan | undefined {
  const { content, volumes } = world;
  if (content === undefined) return undefined;
  for (const view of volumes) {
    const refusal = checkClaim(world, content.spec, view);
    if (refusal === undefined) continue;
    const reason = 'ClaimConflict';
    // A VM with some of its disks replaced must not run, so the restore waits until the conflict is resolved.
    if (hasReplaced(world)) return continueRestore(world, { reason, message: refusal, requeueAfterMs: RECHECK_MS });
    return failRestore(world, reason, refusal);
  }
  return undefined;
}

/**
 * Records that claims are replaced, before the first one is. What users create in the place of a deleted claim must not
 * make the restore fail: it would release the snapshot, which has the only copy then.
 */
export function beginReplacing(world: RestoreWorld): Plan | undefined {
  const { restore, volumes } = world;
  const replaces = volumes.some(
    (view) => replacesClaim(restore, view) && view.claim !== undefined && !isRestoredClaim(view, restore),
  );
  if (!replaces || restore.status?.replacingClaims === true) return undefined;
  const newStatus = { replacingClaims: true };
  return continueRestore(world, { reason: 'CreatingClaims', message: 'Creating new PVCs', newStatus });
}

export function createClaims(world: RestoreWorld): Plan | undefined {
  const { restore, volumes } = world;
  const changes: Change[] = [];
  for (const view of volumes) {
    if (view.claim !== undefined) {
      if (!isRestoredClaim(view, restore) && !isDeleting(view.claim)) changes.push(replaceClaim(restore, view.claim));
    } else if (view.backup !== undefined) changes.push(createClaim(world, view, view.backup));
  }
  return changes.length > 0 ? tryChanges(changes.slice(0, MAX_AT_ONCE)) : undefined;
}

/** Marks the claim as replaced by this restore, then deletes it. */
function replaceClaim({ metadata: { uid: by } }: RestoreWorld['restore'], claim: OwnClaim['claim']): Change {
  if (replacedBy(claim) === by) return deleteClaim(claim, 'the restore replaces it');
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const body = { metadata: { resourceVersion, annotations: { [REPLACED_BY_ANNOTATION]: by } } };
  const patch = { type: 'merge', body } as const;
  return {
    do: 'patch',
    type: PERSISTENT_VOLUME_CLAIMS,
    name: { name, namespace },
    uid,
    patch,
    why: 'the restore replaces it',
  };
}

export function awaitClaims(world: RestoreWorld): Plan | undefined {
  const waiting = world.volumes.filter((view) => !isReady(world, view)).map(({ claimName }) => claimName);
  if (waiting.length === 0) return undefined;
  return continueRestore(world, {
    reason: 'WaitingForClaims',
    message: `Waiting for new PVCs: ${waiting.join(', ')}`,
    requeueAfterMs: RECHECK_MS,
  });
}

/** Reports whether the restore has already replaced a disk of the target: then it must be completed. */
export function hasReplaced({ restore, volumes }: RestoreWorld): boolean {
  if (restore.status?.restores === undefined || restore.status.targetUID === undefined) return false;
  if (restore.status.replacingClaims === true) return true;
  return volumes.some(
    (view) =>
      replacesClaim(restore, view) &&
      (view.claim === undefined || isDeleting(view.claim) || isRestoredClaim(view, restore)),
  );
}

/** Makes the VM the owner of the claims; with the ownership policy None they get no owner. */
export function handOverClaims(world: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  return ownClaims(world)
    .slice(0, MAX_AT_ONCE)
    .map(({ claimName, claim }) =>
      isStateClaim(world.restore, claimName)
        ? handOverRestoredState(world, claim, vm)
        : setOwners(claim, ownersOf(world, vm.metadata.uid), 'the claim belongs to the restored VM'),
    );
}

export const CLAIMS_OWNED_REASON = 'RestoredClaimsOwned';
/** Maximum number of claims in the Event. */
const MAX_NAMED = 3;

/** Returns an Event with the disks that are deleted with the VM from now on. */
export function claimsOwnedEvents({ restore, volumes }: RestoreWorld): EventNote[] {
  const disks = volumes.map(({ claimName }) => claimName).filter((name) => !isStateClaim(restore, name));
  if (disks.length === 0 || restore.spec.volumeOwnershipPolicy === 'None') return [];
  const names = `${disks.slice(0, MAX_NAMED).join(', ')}${disks.length > MAX_NAMED ? ' and others' : ''}`;
  const message =
    `The disks of VirtualMachine ${restore.spec.target.name} are now deleted with it: PersistentVolumeClaim ${names}; ` +
    'to keep such disks, restore with volumeOwnershipPolicy: None';
  return [{ type: 'Normal', reason: CLAIMS_OWNED_REASON, message }];
}

/**
 * Deletes the claims of a failed restore. A claim that has replaced a disk of the target stays with the target, which
 * has no other copy. A claim of a protected VM is also kept: the API server refuses to delete it.
 */
export function removeClaims(world: RestoreWorld): Change[] {
  const { targetUID } = world.restore.status ?? {};
  return ownClaims(world)
    .flatMap(({ claim, ...view }) => {
      if (targetUID !== undefined && replacesClaim(world.restore, view))
        return [
          setOwners(
            claim,
            ownersOf(world, targetUID),
            'the restore has failed, and the VM has no other copy of this disk',
          ),
        ];
      if (claim.metadata.annotations?.[PROTECTED_VMS_ANNOTATION])
        return [setOwners(claim, [], 'the restore has failed, and a protected VM uses the claim')];
      return isDeleting(claim) ? [] : [deleteClaim(claim, 'the restore has failed')];
    })
    .slice(0, MAX_AT_ONCE);
}

interface OwnClaim {
  readonly volumeName: string;
  readonly claimName: string;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Returns the claims that this restore created and has not handed over. */
function ownClaims({ restore, volumes }: RestoreWorld): OwnClaim[] {
  return volumes.flatMap(({ volumeName, claimName, claim }) =>
    claim !== undefined && controllerUid(claim) === restore.metadata.uid ? [{ volumeName, claimName, claim }] : [],
  );
}

function setOwners({ metadata }: OwnClaim['claim'], ownerReferences: readonly OwnerReference[], why: string): Change {
  const { name, namespace, uid, resourceVersion } = metadata;
  const annotations = { [RESTORED_BY_ANNOTATION]: null };
  const patch = { type: 'merge', body: { metadata: { resourceVersion, ownerReferences, annotations } } } as const;
  return { do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, patch, why };
}

function ownersOf({ restore }: RestoreWorld, vmUid: string): OwnerReference[] {
  const { target, volumeOwnershipPolicy } = restore.spec;
  return volumeOwnershipPolicy === 'None' ? [] : [vmOwnerReference({ metadata: { name: target.name, uid: vmUid } })];
}

function checkClaim(world: RestoreWorld, { source }: ContentSpec, view: RestoredVolume): string | undefined {
  const { restore } = world;
  const { claim, claimName, users } = view;
  // A claim under deletion will make room.
  if (claim === undefined || isRestoredClaim(view, restore) || isDeleting(claim)) return undefined;
  const { name } = restore.spec.target;
  const conflict = `PersistentVolumeClaim ${claimName} already exists and was not created by this restore`;
  if (!replacesClaim(restore, view) || source.virtualMachine.metadata.name !== name) return conflict;
  const [user] = users;
  const cannotReplace = `Cannot replace PersistentVolumeClaim ${claimName}`;
  if (user !== undefined) return `${cannotReplace}: ${user} also uses it`;
  if (world.vm?.status?.stateClaim?.uid === claim.metadata.uid)
    return `${cannotReplace}: it holds the persistent state of the VM`;
  const owner = controllerOf(claim);
  if (owner === undefined)
    return belongsToTarget(world, view, claim) ? undefined : `${cannotReplace}: it does not belong to the VM`;
  const isOwnedByVm = owner.kind === VIRTUAL_MACHINES.kind && owner.name === name;
  // A user has given it the owner and the mark of this restore, which has not created it.
  if (owner.uid === restore.metadata.uid && isMarkedBy(claim, restore)) return undefined;
  return isOwnedByVm ? undefined : `${cannotReplace}: it belongs to ${owner.kind} ${owner.name}`;
}

/** Reports whether a claim without an owner is the one in the snapshot, or is used by the VM now. */
function belongsToTarget(
  { vm }: RestoreWorld,
  { backup, claimName }: RestoredVolume,
  { metadata }: OwnClaim['claim'],
): boolean {
  if (backup?.persistentVolumeClaim.metadata.uid === metadata.uid) return true;
  return claimNamesOf(vm?.spec.template.spec ?? {}).includes(claimName);
}

/** Reports whether the claim has its data, or waits for its first consumer and gets the data when the VM starts. */
function isReady({ restore }: RestoreWorld, view: RestoredVolume): boolean {
  const { claim, volume, storageClass } = view;
  if (claim === undefined || isDeleting(claim) || !isRestoredClaim(view, restore)) return false;
  if (claim.status?.phase === 'Bound') {
    return volume !== undefined && volume.metadata.finalizers?.includes(VOLUME_COPY_FINALIZER) !== true;
  }
  const pending = claim.status?.phase === undefined || claim.status.phase === 'Pending';
  const unplaced = !claim.spec.volumeName && volume === undefined;
  return pending && unplaced && storageClass?.volumeBindingMode === 'WaitForFirstConsumer';
}

function createClaim(
  { restore }: RestoreWorld,
  view: RestoredVolume,
  backup: NonNullable<RestoredVolume['backup']>,
): Change {
  const why = `Created PersistentVolumeClaim ${view.claimName} from VolumeSnapshot ${view.snapshotName}`;
  return { do: 'create', type: PERSISTENT_VOLUME_CLAIMS, object: buildRestoredClaim(restore, backup, view), why };
}

function deleteClaim({ metadata }: Stored<PersistentVolumeClaim>, cause: string): Change {
  const { name, namespace, uid } = metadata;
  const why = `Deleted PersistentVolumeClaim ${name}: ${cause}`;
  return { do: 'delete', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, why };
}
