/** What keeps a migration waiting that could go otherwise. Told in its status; an event wakes it. Pure. */
import { isMigrating } from '#api/migration-state.ts';
import { needsState } from '#api/persistent-state.ts';
import { busyVolume } from '#controllers/migration/moving-volumes.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import { findCondition } from '#kube/conditions.ts';

type Check = (world: MigrationWorld) => string | undefined;

/** The first that has something to say says it; what lasts longest comes first. */
const checks: readonly Check[] = [
  notRunning,
  lockedVm,
  unfinishedOther,
  changingDevices,
  missingState,
  busyVolume,
  clusterLimit,
  nodeLimit,
];

/** What may have come up since it has begun. */
const lastChecks: readonly Check[] = [lockedVm, changingDevices, busyVolume];

/** Of a migration that has not begun. */
export function obstacleOf(world: MigrationWorld): string | undefined {
  return firstOf(checks, world);
}

/** Of one that has, before the agents are told. */
export function lastObstacleOf(world: MigrationWorld): string | undefined {
  return firstOf(lastChecks, world);
}

function firstOf(list: readonly Check[], world: MigrationWorld): string | undefined {
  for (const check of list) {
    const obstacle = check(world);
    if (obstacle !== undefined) return obstacle;
  }
  return undefined;
}

function notRunning({ vmi, sourcePod }: MigrationWorld): string | undefined {
  const { phase, conditions } = vmi?.status ?? {};
  if (phase !== 'Running') return `the VMI is ${phase ?? 'Pending'}, and not Running yet`;
  if (!sourcePod?.spec.nodeName) return 'the virt-launcher pod of the VMI is not known yet';
  return findCondition(conditions, 'LiveMigratable') === undefined
    ? 'it is not known yet whether the VMI can be migrated'
    : undefined;
}

function lockedVm({ vm }: MigrationWorld): string | undefined {
  const { snapshotInProgress, restoreInProgress } = vm?.status ?? {};
  if (snapshotInProgress) return `the snapshot ${snapshotInProgress} of the VM is being taken`;
  return restoreInProgress ? `the restore ${restoreInProgress} of the VM goes on` : undefined;
}

/** Of a migration that somebody has removed by force, so that nobody winds it up. */
function unfinishedOther({ vmi, migration }: MigrationWorld): string | undefined {
  const { migrationState, migrationProgress } = vmi?.status ?? {};
  const other = migrationState?.migrationUid;
  if (!isMigrating(migrationState) || other === migration.metadata.uid) return undefined;
  const isOver = migrationProgress?.migrationUid === other && migrationProgress?.phase === 'Failed';
  return isOver ? undefined : `the migration ${other ?? ''} of the VMI has not come to its end`;
}

/** Both sides must have the same devices. */
function changingDevices({ vmi }: MigrationWorld): string | undefined {
  const changing = vmi?.status?.hotplug?.find(({ phase }) => phase === 'Plugging' || phase === 'Unplugging');
  return changing && `the device ${changing.device} of the VMI is ${changing.phase.toLowerCase()}`;
}

function missingState({ vmi, sourceClaim }: MigrationWorld): string | undefined {
  if (vmi === undefined || !needsState(vmi.spec) || sourceClaim !== undefined) return undefined;
  return 'no backend-storage PVC found in VMI volume status';
}

function clusterLimit({ active, settings }: MigrationWorld): string | undefined {
  const limit = settings.parallelMigrationsPerCluster;
  if (active.inCluster < limit) return undefined;
  return `as many migrations go on as may in the cluster (parallelMigrationsPerCluster: ${limit})`;
}

function nodeLimit({ active, settings, sourcePod }: MigrationWorld): string | undefined {
  const limit = settings.parallelOutboundMigrationsPerNode;
  if (active.fromNode < limit) return undefined;
  const node = sourcePod?.spec.nodeName ?? '';
  return `as many migrations leave node ${node} as may at a time (parallelOutboundMigrationsPerNode: ${limit})`;
}
