/**
 * The claims of a restore: named, made from the volume snapshots, waited for, and in the end the VM's. A claim of another
 * is never touched, but for one that InPlace replaces: by its uid, and only while nobody runs on it. Pure.
 */
import { claimNamesOf } from '#api/claim-names.ts';
import { PROTECTED_VMS_ANNOTATION } from '#api/delete-protection.ts';
import { VOLUME_COPY_FINALIZER } from '#api/names.ts';
import { VIRTUAL_MACHINES, type VirtualMachine } from '#api/virtual-machine/kind.ts';
import { ownedByVm } from '#api/virtual-machine/owner.ts';
import type { ContentSpec } from '#api/virtual-machine-snapshot-content/kind.ts';
import { buildClaim, replacesClaim } from '#controllers/restore/build-claim.ts';
import { hasMark, type RestoreWorld, type VolumeView } from '#controllers/restore/restore-world.ts';
import { fails, goesOn, tries } from '#controllers/restore/restore-status.ts';
import { handOverState, isStateClaim } from '#controllers/restore/restored-state.ts';
import { PERSISTENT_VOLUME_CLAIMS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerOf, controllerUid, isDeleting, type OwnerReference, type Stored } from '#kube/meta.ts';
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

/** All of them, and before anything is done: nobody is stopped, and nothing deleted, for a restore that cannot go on. */
export function refuseClaims(world: RestoreWorld): Plan | undefined {
  const { content, volumes } = world;
  if (content === undefined) return undefined;
  for (const view of volumes) {
    const fault = faultOf(world, content.spec, view);
    if (fault === undefined) continue;
    const reason = 'ClaimConflict';
    // A VM with some of its disks replaced must not run: whoever is in the way may still go.
    if (hasReplaced(world)) return goesOn(world, { reason, message: fault, requeueAfterMs: LOOK_AGAIN_MS });
    return fails(world, reason, fault);
  }
  return undefined;
}

export function makeClaims(world: RestoreWorld): Plan | undefined {
  const { restore, volumes } = world;
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
    (view) =>
      replacesClaim(restore, view) &&
      (view.claim === undefined || isDeleting(view.claim) || hasMark(view.claim, restore)),
  );
}

/** From now on they go with the VM, or with nobody. */
export function handOverClaims(world: RestoreWorld, vm: Stored<VirtualMachine>): Change[] {
  return own(world)
    .slice(0, MAX_AT_ONCE)
    .map(({ claimName, claim }) =>
      isStateClaim(world.restore, claimName)
        ? handOverState(world, claim, vm)
        : handOver(claim, ownersOf(world, vm.metadata.uid), 'the restored VM has it now'),
    );
}

/**
 * What a restore that failed has made and nobody got. But what has taken the place of a disk of the target stays its
 * disk: there is no other any more. Nor is a disk of a protected VM deleted, by whomever it was put under the restore: the
 * API server would let us (CLAIM_REPLACERS).
 */
export function leaveClaims(world: RestoreWorld): Change[] {
  const { targetUID } = world.restore.status ?? {};
  return own(world)
    .flatMap(({ claim, ...view }) => {
      if (targetUID !== undefined && replacesClaim(world.restore, view))
        return [handOver(claim, ownersOf(world, targetUID), 'the VM has no other, though the restore has failed')];
      if (claim.metadata.annotations?.[PROTECTED_VMS_ANNOTATION])
        return [handOver(claim, [], 'a protected VM has it, though the restore has failed')];
      return isDeleting(claim) ? [] : [remove(claim, 'the restore has failed')];
    })
    .slice(0, MAX_AT_ONCE);
}

interface OwnClaim {
  readonly volumeName: string;
  readonly claimName: string;
  readonly claim: Stored<PersistentVolumeClaim>;
}

/** Those that this restore made and has not handed over. */
function own({ restore, volumes }: RestoreWorld): OwnClaim[] {
  return volumes.flatMap(({ volumeName, claimName, claim }) =>
    claim !== undefined && controllerUid(claim) === restore.metadata.uid ? [{ volumeName, claimName, claim }] : [],
  );
}

function handOver({ metadata }: OwnClaim['claim'], ownerReferences: readonly OwnerReference[], why: string): Change {
  const { name, namespace, uid, resourceVersion } = metadata;
  const patch = { type: 'merge', body: { metadata: { resourceVersion, ownerReferences } } } as const;
  return { do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { name, namespace }, uid, patch, why };
}

function ownersOf({ restore }: RestoreWorld, vmUid: string): OwnerReference[] {
  const { target, volumeOwnershipPolicy } = restore.spec;
  return volumeOwnershipPolicy === 'None' ? [] : [ownedByVm({ metadata: { name: target.name, uid: vmUid } })];
}

function faultOf(world: RestoreWorld, { source }: ContentSpec, view: VolumeView): string | undefined {
  const { restore } = world;
  const { claim, claimName, users } = view;
  // One that goes is waited for, whoever had it.
  if (claim === undefined || hasMark(claim, restore) || isDeleting(claim)) return undefined;
  const { name } = restore.spec.target;
  const there = `the claim ${claimName} exists already and was not made by this restore`;
  if (!replacesClaim(restore, view) || source.virtualMachine.metadata.name !== name) return there;
  const [user] = users;
  const kept = `the claim ${claimName} cannot be replaced`;
  if (user !== undefined) return `${kept}: ${user} uses it, too`;
  const owner = controllerOf(claim);
  if (owner === undefined) return isTargets(world, view, claim) ? undefined : `${kept}: it is not that of the VM`;
  const isVms = owner.kind === VIRTUAL_MACHINES.kind && owner.name === name;
  return isVms ? undefined : `${kept}: it belongs to ${owner.kind} ${owner.name}`;
}

/** Of claims that nobody controls: the very one of which the snapshot was taken, or one that the VM has now. */
function isTargets({ vm }: RestoreWorld, { backup, claimName }: VolumeView, { metadata }: OwnClaim['claim']): boolean {
  if (backup?.persistentVolumeClaim.metadata.uid === metadata.uid) return true;
  return claimNamesOf(vm?.spec.template.spec ?? {}).includes(claimName);
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
