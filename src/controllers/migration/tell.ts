/**
 * How the instance, and by it the agents, are told of a migration: they get a copy of what the migration's own status
 * says, whenever that has changed. Before the first time all must be in place that they rely on. Pure.
 */
import { MIGRATION_POD_FINALIZER } from '#api/names.ts';
import type { MigrationState } from '#api/migration-state.ts';
import { VIRTUAL_MACHINE_INSTANCES } from '#api/virtual-machine-instance/kind.ts';
import { addFinalizer } from '#controllers/migration/finalizers.ts';
import { lateness } from '#controllers/migration/lateness.ts';
import { lastObstacleOf } from '#controllers/migration/limits.ts';
import { statusOf } from '#controllers/migration/migration-status.ts';
import { phaseOf, recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { announceVolumes, movingVolumes, VOLUMES_AT_A_TIME } from '#controllers/migration/moving-volumes.ts';
import { deepEqual } from '#kube/deep.ts';
import { PODS } from '#kube/core-kinds.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, Plan } from '#runtime/plan.ts';

const STATE_PATH = '/status/migrationState';

/** The target pod has a node: nothing is missing any more. */
export function tellAgents(world: MigrationWorld): Plan {
  const { targetPod, sourcePod, now } = world;
  const targetNode = targetPod?.spec.nodeName ?? '';
  const obstacle = lastObstacleOf(world);
  if (obstacle !== undefined) {
    const status = statusOf(world, { message: obstacle });
    return { changes: [], status, requeueAfterMs: lateness(world)?.leftMs };
  }
  const moving = movingVolumes(world).map(({ name }) => name);
  const { mirroredVolumes: _, ...record } = recordOf(world);
  const state: MigrationState = {
    ...record,
    targetNode,
    targetPodUID: targetPod?.metadata.uid,
    ...(moving.length === 0 ? {} : { mirroredVolumes: moving }),
    startTimestamp: record.startTimestamp ?? timestamp(now),
  };
  const announced = announceVolumes(world, targetNode);
  if (announced.length > VOLUMES_AT_A_TIME) {
    return { changes: announced.slice(0, VOLUMES_AT_A_TIME), status: statusOf(world, { state }) };
  }
  const why = 'what it says of the guest must be heard';
  const isNews = phaseOf(world.migration) !== 'Scheduled';
  const message = `The guest is to go from node ${record.sourceNode ?? ''} to node ${targetNode}`;
  return {
    status: statusOf(world, { state }),
    changes: [
      ...addFinalizer(MIGRATION_POD_FINALIZER, PODS, sourcePod, why),
      ...announced,
      ...tellInstance(world, state, 'its guest is to go to another node'),
    ],
    events: isNews ? [{ type: 'Normal', reason: 'PreparingTarget', message }] : [],
  };
}

/** Nothing where it says so already. */
export function tellInstance({ vmi }: MigrationWorld, state: MigrationState, why: string): Change[] {
  if (vmi === undefined || deepEqual(vmi.status?.migrationState, withoutUndefined(state))) return [];
  const { namespace, name, uid } = vmi.metadata;
  // Whoever was told of another migration meanwhile must not be told of this one.
  const told = vmi.status?.migrationState?.migrationUid;
  const before = { op: 'test', path: `${STATE_PATH}/migrationUid`, value: told };
  const guard = told === undefined ? { op: 'test', path: STATE_PATH, value: null } : before;
  const body = [guard, { op: 'add', path: STATE_PATH, value: withoutUndefined(state) }];
  const patch = { type: 'json' as const, body };
  const change = { type: VIRTUAL_MACHINE_INSTANCES, name: { namespace, name }, uid, subresource: 'status', why };
  return [{ do: 'patch', ...change, patch }];
}

function withoutUndefined(state: MigrationState): MigrationState {
  return Object.fromEntries(Object.entries(state).filter(([, value]) => value !== undefined));
}
