/**
 * The checks that make a migration wait although it is possible. Its status reports the reason; the watched objects
 * trigger the next reconcile. Pure.
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import { needsState } from '#api/storage/persistent-state.ts';
import { checkVolumesFree } from '#controllers/migration/moving-volumes.ts';
import type { MigrationWorld } from '#controllers/migration/migration-world.ts';
import { findCondition } from '#kube/conditions.ts';

type Check = (world: MigrationWorld) => string | undefined;

/** The first refusal is reported. Reasons that last longest come first. */
const beginChecks: readonly Check[] = [
  checkInstanceRuns,
  checkVmHold,
  checkLostMigration,
  checkHotplug,
  checkStateClaim,
  checkVolumesFree,
  checkClusterLimit,
  checkNodeLimit,
];

/** Checks whose result can change between the begin of the migration and its announcement. */
const announceChecks: readonly Check[] = [checkVmHold, checkHotplug, checkVolumesFree];

/** Returns why a migration has to wait before it begins, or undefined if it can begin. */
export function checkReadyToBegin(world: MigrationWorld): string | undefined {
  return firstRefusal(beginChecks, world);
}

/** Returns why a migration that has begun cannot be announced to the agents yet. */
export function checkReadyToAnnounce(world: MigrationWorld): string | undefined {
  return firstRefusal(announceChecks, world);
}

function firstRefusal(list: readonly Check[], world: MigrationWorld): string | undefined {
  for (const check of list) {
    const refusal = check(world);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function checkInstanceRuns({ vmi, sourcePod }: MigrationWorld): string | undefined {
  const { phase, conditions } = vmi?.status ?? {};
  if (phase !== 'Running') return `the VMI is ${phase ?? 'Pending'}; it must be Running`;
  if (!sourcePod?.spec.nodeName) return 'the VMI has no virt-launcher pod on a node yet';
  return findCondition(conditions, 'LiveMigratable') === undefined
    ? 'it is not known yet whether the VMI can be migrated'
    : undefined;
}

function checkVmHold({ vm }: MigrationWorld): string | undefined {
  const { snapshotInProgress, restoreInProgress } = vm?.status ?? {};
  if (snapshotInProgress) return `snapshot ${snapshotInProgress} of the VM is in progress`;
  return restoreInProgress ? `restore ${restoreInProgress} of the VM is in progress` : undefined;
}

/** Finds another migration on the instance whose object was removed by force, so that no controller winds it up. */
function checkLostMigration({ vmi, migration }: MigrationWorld): string | undefined {
  const { migrationState, migrationProgress } = vmi?.status ?? {};
  const other = migrationState?.migrationUid;
  if (!isMigrating(migrationState) || other === migration.metadata.uid) return undefined;
  const isOver = migrationProgress?.migrationUid === other && migrationProgress?.phase === 'Failed';
  return isOver ? undefined : `migration ${other ?? ''} of the VMI has not ended`;
}

/** Source and target must have the same devices. */
function checkHotplug({ vmi }: MigrationWorld): string | undefined {
  const changing = vmi?.status?.hotplug?.find(({ phase }) => phase === 'Plugging' || phase === 'Unplugging');
  return changing && `device ${changing.device} of the VMI is ${changing.phase.toLowerCase()}`;
}

function checkStateClaim({ vmi, sourceClaim }: MigrationWorld): string | undefined {
  if (vmi === undefined || !needsState(vmi.spec) || sourceClaim !== undefined) return undefined;
  return 'no backend-storage PVC found in VMI volume status';
}

function checkClusterLimit({ active, settings }: MigrationWorld): string | undefined {
  const limit = settings.parallelMigrationsPerCluster;
  if (active.inCluster < limit) return undefined;
  return `the cluster already has the maximum number of migrations (parallelMigrationsPerCluster: ${limit})`;
}

function checkNodeLimit({ active, settings, sourcePod }: MigrationWorld): string | undefined {
  const limit = settings.parallelOutboundMigrationsPerNode;
  if (active.fromNode < limit) return undefined;
  const node = sourcePod?.spec.nodeName ?? '';
  return `node ${node} already has the maximum number of outbound migrations (parallelOutboundMigrationsPerNode: ${limit})`;
}
