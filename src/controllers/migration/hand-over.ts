/**
 * The hand over after a successful migration: makes the state claim and the volume copies of the target node those of
 * the VM. Each step follows from the objects as they are, so that a controller that restarts continues with the next
 * one:
 *
 *   source claim replaced ─► target claim marked ─► source claim unmarked ─► volumes ─► instance ─► source pod gone
 *                         ─► source claim gone ─► done
 *
 * The first step decides which claim is the state of the VM (findStateClaim). It is a mark that only this controller and
 * the restore controller can write, and without it the source claim is not deleted: names, labels and owners of claims
 * are written by users, and must not make this controller delete a disk. Pure.
 */
import type { MigrationState } from '#api/migration/migration-state.ts';
import { MIGRATION_NAME_LABEL, MIGRATION_POD_FINALIZER } from '#api/names.ts';
import {
  REPLACED_BY_ANNOTATION,
  replacedBy,
  STATE_LABEL,
  stateAnnotationOf,
  stateKeyOf,
  stateKeysOfClaim,
  SUPERSEDES_ANNOTATION,
} from '#api/storage/persistent-state.ts';
import { removeFinalizer } from '#controllers/shared/finalizers.ts';
import { endMigration } from '#controllers/migration/end-migration.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import { isAnnouncedTo, migrationStateOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { moveVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { writeInstanceState } from '#controllers/migration/announce.ts';
import { findCondition } from '#kube/conditions.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS, type PersistentVolumeClaim } from '#kube/core-kinds.ts';
import { controllerOf, isDeleting, type Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

type Claim = Stored<PersistentVolumeClaim>;

export function handOver(world: MigrationWorld): Plan {
  const state = succeededState(world);
  const refusal = checkStateClaims(world);
  if (refusal !== undefined)
    return { changes: [], status: buildMigrationStatus(world, { phase: 'Running', message: refusal }) };
  const volumes = moveVolumes(world);
  const wasAnnounced = isAnnouncedTo(world.vmi, world.migration.metadata.uid);
  const afterVolumes = [
    ...(wasAnnounced ? writeInstanceState(world, state, 'the guest has moved to another node') : []),
    ...releaseBothPods(world),
    ...removeSourceClaim(world),
  ];
  const changes = [
    ...handOverState(world),
    ...volumes.slice(0, VOLUMES_AT_A_TIME),
    ...(volumes.length > VOLUMES_AT_A_TIME ? [] : afterVolumes),
  ];
  if (changes.length > 0) return { status: buildMigrationStatus(world, { state, phase: 'Running' }), changes };
  const { sourceNode = '', targetNode = '' } = state;
  const message = `The guest has moved from node ${sourceNode} to node ${targetNode}`;
  return endMigration(world, {
    phase: 'Succeeded',
    state,
    note: { type: 'Normal', reason: 'SuccessfulMigration', message },
  });
}

function succeededState(world: MigrationWorld): MigrationState {
  const current = migrationStateOf(world);
  if (current.completed === true) return current;
  const now = timestamp(world.now);
  const ready = findCondition(world.targetPod?.status?.conditions, 'Ready');
  return {
    ...current,
    completed: true,
    endTimestamp: now,
    targetNodeDomainReadyTimestamp: (ready?.status === 'True' ? ready.lastTransitionTime : undefined) ?? now,
    ...(current.abortRequested === true ? { abortStatus: 'Failed' as const } : {}),
  };
}

/**
 * Returns why the state claims cannot be handed over. Nothing is marked or deleted until a user has fixed the claims.
 */
function checkStateClaims(world: MigrationWorld): string | undefined {
  const { sourcePersistentStatePVCName: source, targetPersistentStatePVCName: target } = migrationStateOf(world);
  if (source === undefined && target === undefined) return undefined;
  if (source === undefined || target === undefined) return 'missing source and/or target PVC name(s)';
  const { targetClaim } = world;
  if (targetClaim === undefined) {
    return world.sourceClaim === undefined
      ? undefined
      : `PersistentVolumeClaim ${target}, which holds the state of the VM, does not exist`;
  }
  const key = stateKeyOf(vmNameOf(targetClaim));
  const { annotations = {}, labels = {} } = targetClaim.metadata;
  const marks = stateKeysOfClaim({ ...targetClaim, metadata: { annotations, labels } });
  const other = marks.find((mark) => mark !== key);
  return other === undefined ? undefined : `PersistentVolumeClaim ${target} already holds the state of VM ${other}`;
}

/** Returns the name of the claim's owner: the VM, or the instance, which has the same name. */
function vmNameOf(claim: Claim): string {
  return controllerOf(claim)?.name ?? '';
}

function handOverState(world: MigrationWorld): Change[] {
  const { migration, sourceClaim, targetClaim } = world;
  if (targetClaim === undefined) return [];
  const vmName = vmNameOf(targetClaim);
  const [annotation, key] = [stateAnnotationOf(vmName), stateKeyOf(vmName)];
  const supersedes: Marks = sourceClaim === undefined ? {} : { [SUPERSEDES_ANNOTATION]: sourceClaim.metadata.uid };
  const replaced: Marks = mayReplace(world) ? { [REPLACED_BY_ANNOTATION]: targetClaim.metadata.uid } : {};
  const why = 'the state of the VM has moved to another claim';
  return [
    ...(sourceClaim === undefined ? [] : markClaim(sourceClaim, replaced, {}, why)),
    ...markClaim(
      targetClaim,
      { [annotation]: 'true', ...supersedes },
      { [STATE_LABEL]: key, ...(isTargetClaimOf(targetClaim, migration) ? { [MIGRATION_NAME_LABEL]: null } : {}) },
      'the claim holds the state of the VM now',
    ),
    ...(sourceClaim === undefined ? [] : markClaim(sourceClaim, { [annotation]: null }, { [STATE_LABEL]: null }, why)),
  ];
}

/** Reports whether the source claim is nothing but the old state of this VM. A disk of any VM is kept. */
function mayReplace({ sourceClaim, otherVmOf }: MigrationWorld): boolean {
  return sourceClaim !== undefined && otherVmOf(sourceClaim.metadata.name) === undefined;
}

type Marks = Readonly<Record<string, string | null>>;

function markClaim({ metadata }: Claim, annotations: Marks, labels: Marks, why: string): Change[] {
  const matches = (wanted: Marks, actual: Readonly<Record<string, string>> = {}) =>
    Object.entries(wanted).every(([key, value]) => (actual[key] ?? null) === value);
  if (matches(annotations, metadata.annotations) && matches(labels, metadata.labels)) return [];
  const { namespace, name, uid } = metadata;
  const patch = { type: 'merge' as const, body: { metadata: { annotations, labels } } };
  return [{ do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, patch, why }];
}

function releaseBothPods({ sourcePod, targetPod }: MigrationWorld): Change[] {
  const why = 'the outcome of the migration is decided';
  return [
    ...deleteObject(PODS, sourcePod, 'Deleted virtual machine pod that the guest has left'),
    ...removeFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
    ...removeFinalizer(MIGRATION_POD_FINALIZER, PODS, targetPod, why),
  ];
}

/** Deletes the source claim once it has the mark that it is replaced by the target claim. */
function removeSourceClaim(world: MigrationWorld): Change[] {
  const { sourceClaim, targetClaim } = world;
  if (sourceClaim === undefined || targetClaim === undefined || !mayReplace(world)) return [];
  if (replacedBy(sourceClaim) !== targetClaim.metadata.uid) return [];
  return deleteObject(PERSISTENT_VOLUME_CLAIMS, sourceClaim, 'Deleted PersistentVolumeClaim of state that has moved');
}

function deleteObject(
  type: typeof PODS | typeof PERSISTENT_VOLUME_CLAIMS,
  object: Stored | undefined,
  text: string,
): Change[] {
  if (object === undefined || isDeleting(object)) return [];
  const { namespace, name, uid } = object.metadata;
  return [{ do: 'delete', type, name: { namespace, name }, uid, why: `${text}: ${name}` }];
}
