/**
 * Announces a migration to the agents: copies the migrationState of the migration to the status of the instance
 * whenever it changes. Before the first copy, everything that the agents rely on must be in place. Pure.
 */
import { MIGRATION_POD_FINALIZER } from '#api/names.ts';
import type { MigrationState } from '#api/migration/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { addFinalizer } from '#controllers/shared/finalizers.ts';
import { targetDeadline } from '#controllers/migration/target-deadline.ts';
import { checkReadyToAnnounce } from '#controllers/migration/check-readiness.ts';
import { buildMigrationStatus } from '#controllers/migration/migration-status.ts';
import { migrationPhaseOf, migrationStateOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { announceVolumes, movingVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { deepEqual } from '#kube/deep.ts';
import { PODS } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

const STATE_PATH = '/status/migrationState';

/** Announces a migration whose target pod has a node. */
export function announceMigration(world: MigrationWorld): Plan {
  const { targetPod, sourcePod, now } = world;
  const targetNode = targetPod?.spec.nodeName ?? '';
  const refusal = checkReadyToAnnounce(world);
  if (refusal !== undefined) {
    const status = buildMigrationStatus(world, { message: refusal });
    return { changes: [], status, requeueAfterMs: targetDeadline(world)?.remainingMs };
  }
  const moving = movingVolumes(world).map(({ name }) => name);
  const { mirroredVolumes: _, ...current } = migrationStateOf(world);
  const state: MigrationState = {
    ...current,
    targetNode,
    targetPodUID: targetPod?.metadata.uid,
    ...(moving.length === 0 ? {} : { mirroredVolumes: moving }),
    startTimestamp: current.startTimestamp ?? timestamp(now),
  };
  const announced = announceVolumes(world, targetNode);
  if (announced.length > VOLUMES_AT_A_TIME) {
    return { changes: announced.slice(0, VOLUMES_AT_A_TIME), status: buildMigrationStatus(world, { state }) };
  }
  const why = 'the pod must exist until its report about the migration was read';
  const isFirst = migrationPhaseOf(world.migration) !== 'Scheduled';
  const message = `Preparing to move the guest from node ${current.sourceNode ?? ''} to node ${targetNode}`;
  return {
    status: buildMigrationStatus(world, { state }),
    changes: [
      ...addFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
      ...announced,
      ...writeInstanceState(world, state, 'the guest is to move to another node'),
    ],
    events: isFirst ? [{ type: 'Normal', reason: 'PreparingTarget', message }] : [],
  };
}

/** Writes the state to the instance unless it has it already. */
export function writeInstanceState({ vmi }: MigrationWorld, state: MigrationState, why: string): Change[] {
  if (vmi === undefined || deepEqual(vmi.status?.migrationState, withoutUndefined(state))) return [];
  const { namespace, name, uid } = vmi.metadata;
  // The patch fails if another migration was announced to the instance meanwhile.
  const announcedUid = vmi.status?.migrationState?.migrationUid;
  const sameMigration = { op: 'test', path: `${STATE_PATH}/migrationUid`, value: announcedUid };
  const guard = announcedUid === undefined ? { op: 'test', path: STATE_PATH, value: null } : sameMigration;
  const body = [guard, { op: 'add', path: STATE_PATH, value: withoutUndefined(state) }];
  const patch = { type: 'json' as const, body };
  const change = { type: VIRTUAL_MACHINE_INSTANCES, name: { namespace, name }, uid, subresource: 'status', why };
  return [{ do: 'patch', ...change, patch }];
}

function withoutUndefined(state: MigrationState): MigrationState {
  return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== undefined));
}
