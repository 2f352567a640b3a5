/**
 * The guest stays, or has ended, where it is: what was made for it at the target goes. Nobody writes into a claim or a
 * volume of the target any more once its pod is gone, so that they come last. Pure.
 *
 *   instance told ─► target pod gone ─► volumes, target claim gone ─► done
 */
import type { MigrationState } from '#api/migration-state.ts';
import { MIGRATION_POD_FINALIZER } from '#api/names.ts';
import { ends } from '#controllers/migration/ending.ts';
import { dropFinalizer } from '#controllers/finalizers.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import { isToldTo, recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { keepVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { isTargetClaimOf } from '#controllers/migration/target-claim.ts';
import { tellInstance } from '#controllers/migration/tell.ts';
import { PERSISTENT_VOLUME_CLAIMS, PODS } from '#kube/core-kinds.ts';
import { isDeleting } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export function windUp(world: MigrationWorld, why: string): Plan {
  const state = failed(world, why);
  const { vmi, migration, targetPod } = world;
  const changes = [
    ...(isToldTo(vmi, migration.metadata.uid) ? tellInstance(world, state, 'its guest stays where it is') : []),
    ...releasePods(world),
    ...(targetPod === undefined ? [...keepVolumes(world).slice(0, VOLUMES_AT_A_TIME), ...removeTarget(world)] : []),
  ];
  if (changes.length > 0 || targetPod !== undefined) {
    return { status: statusOf(world, { state, message: why }), changes };
  }
  return ends(world, {
    phase: 'Failed',
    state,
    message: why,
    note: { type: 'Warning', reason: 'FailedMigration', message: `The guest was not migrated: ${why}` },
  });
}

function failed(world: MigrationWorld, failureReason: string): MigrationState {
  const record = recordOf(world);
  if (record.completed === true) return record;
  const isCancelled = record.abortRequested === true || isDeleting(world.migration);
  return {
    ...record,
    migrationUid: world.migration.metadata.uid,
    completed: true,
    failed: true,
    failureReason,
    endTimestamp: timestamp(world.now),
    ...(isCancelled ? { abortRequested: true, abortStatus: 'Succeeded' as const } : {}),
  };
}

function releasePods({ sourcePod, targetPod }: MigrationWorld): Change[] {
  const why = 'it is decided where the guest is';
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
    ...dropFinalizer(MIGRATION_POD_FINALIZER, PODS, targetPod, why),
    ...dropFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
  ];
}

/** Only what this migration has made, and never what somebody took for the state of a VM. */
function removeTarget({ migration, targetClaim }: MigrationWorld): Change[] {
  if (targetClaim === undefined || isDeleting(targetClaim) || !isTargetClaimOf(targetClaim, migration)) return [];
  const { namespace, name, uid } = targetClaim.metadata;
  const why = `Deleted PersistentVolumeClaim ${name}, to which no state came`;
  return [{ do: 'delete', type: PERSISTENT_VOLUME_CLAIMS, name: { namespace, name }, uid, why }];
}
