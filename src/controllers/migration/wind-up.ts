/**
 * Winds up a failed migration: the guest stays on the source node or has ended there, so the objects of the target are
 * removed. The claim and the volumes come last, because the target may write to them until its pod is gone. Pure.
 *
 *   instance updated ─► target pod gone ─► volumes, target claim gone ─► done
 */
import type { MigrationState } from '#api/migration/migration-state.ts';
import { MIGRATION_POD_FINALIZER } from '#api/names.ts';
import { REPLACED_BY_ANNOTATION, replacedBy } from '#api/storage/persistent-state.ts';
import { isFinal } from '#api/virtual-machine-instance/kind.ts';
import { endMigration } from '#controllers/migration/end-migration.ts';
import { removeFinalizer } from '#controllers/shared/finalizers.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import { isAnnouncedTo, migrationStateOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { keepVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { writeInstanceState } from '#controllers/migration/announce.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import { isDeleting } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export function windUp(world: MigrationWorld, why: string): Plan {
  const state = failedState(world, why);
  const { vmi, migration, targetPod } = world;
  const changes = [
    ...(isAnnouncedTo(vmi, migration.metadata.uid)
      ? writeInstanceState(world, state, 'the guest stays on its node')
      : []),
    ...removeTargetPod(world),
    ...(targetPod === undefined
      ? [...keepVolumes(world).slice(0, VOLUMES_AT_A_TIME), ...removeTargetClaim(world)]
      : []),
  ];
  if (changes.length > 0 || targetPod !== undefined) {
    return { status: buildMigrationStatus(world, { state, message: why }), changes };
  }
  const message = describeFailure(world, why);
  return endMigration(world, {
    phase: 'Failed',
    state,
    // Without a target, the reason is about the instance itself and needs no nodes.
    message: state.targetNode === undefined ? why : message,
    note: { type: 'Warning', reason: 'FailedMigration', message },
  });
}

/** Returns the reason of the failure with both nodes, as far as they are known, and where the guest is now. */
function describeFailure(world: MigrationWorld, why: string): string {
  const { vmi, migration } = world;
  const { sourceNode, targetNode } = migrationStateOf(world);
  const from = sourceNode ?? vmi?.status?.nodeName;
  const route = `${from ? ` from ${from}` : ''}${targetNode ? ` to ${targetNode}` : ''}`;
  const hasGuest = vmi !== undefined && !isFinal(vmi) && vmi.status?.nodeName !== undefined;
  const place = hasGuest ? `the guest is on ${vmi.status?.nodeName ?? ''}` : 'the guest does not run';
  return `Cannot migrate the guest of VMI ${migration.spec.vmiName ?? ''}${route}: ${why}; ${place}`;
}

function failedState(world: MigrationWorld, failureReason: string): MigrationState {
  const current = migrationStateOf(world);
  if (current.completed === true) return current;
  const isCancelled = current.abortRequested === true || isDeleting(world.migration);
  return {
    ...current,
    migrationUid: world.migration.metadata.uid,
    completed: true,
    failed: true,
    failureReason,
    endTimestamp: timestamp(world.now),
    ...(isCancelled ? { abortRequested: true, abortStatus: 'Succeeded' as const } : {}),
  };
}

function removeTargetPod({ sourcePod, targetPod }: MigrationWorld): Change[] {
  const why = 'the outcome of the migration is decided';
  const changes: Change[] = [];
  if (targetPod !== undefined && !isDeleting(targetPod)) {
    const { namespace, name, uid } = targetPod.metadata;
    changes.push({
      do: 'delete',
      type: PODS,
      name: { namespace, name },
      uid,
      why: `Deleted migration target pod ${name}`,
    });
  }
  return [
    ...changes,
    ...removeFinalizer(MIGRATION_POD_FINALIZER, PODS, targetPod, why),
    ...removeFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
  ];
}

/**
 * Deletes the target claim if this migration created it and no VM has adopted it as its state or disk. First marks it as
 * replaced by the source claim: the API server refuses to delete a claim of a protected VM without that mark.
 */
function removeTargetClaim({ migration, sourceClaim, targetClaim, otherVmOf }: MigrationWorld): Change[] {
  if (targetClaim === undefined || isDeleting(targetClaim) || !isTargetClaimOf(targetClaim, migration)) return [];
  const { namespace, name, uid } = targetClaim.metadata;
  if (otherVmOf(name) !== undefined) return [];
  const by = sourceClaim?.metadata.uid ?? migration.metadata.uid;
  if (replacedBy(targetClaim) !== by) {
    const patch = { type: 'merge' as const, body: { metadata: { annotations: { [REPLACED_BY_ANNOTATION]: by } } } };
    const given = 'the state of the VM stays in its claim';
    return [{ do: 'patch', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, patch, why: given }];
  }
  const why = `Deleted PersistentVolumeClaim ${name}: the migration did not move the state into it`;
  return [{ do: 'delete', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, why }];
}
