/** The checks that fail a migration before it is announced to the agents. After that, only the agents decide. Pure. */
import {
  hasBegun,
  migrationPhaseOf,
  phaseRank,
  migrationStateOf,
  type StoredMigration,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { checkVolumesCanMove } from '#controllers/migration/moving-volumes.ts';
import { targetDeadline } from '#controllers/migration/target-deadline.ts';
import { findCondition } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';

export const CANCELLED = 'the migration was cancelled';

type Check = (world: MigrationWorld) => string | undefined;

const checks: readonly Check[] = [
  refuseCancelled,
  refuseEndedInstance,
  refuseSecondMigration,
  refuseUnmigratable,
  refuseEndedSource,
  refuseLostTarget,
];

export function refuseMigration(world: MigrationWorld): string | undefined {
  for (const check of checks) {
    const refusal = check(world);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function refuseCancelled({ migration }: MigrationWorld): string | undefined {
  return isDeleting(migration) ? CANCELLED : undefined;
}

function refuseEndedInstance({ vmi, migration }: MigrationWorld): string | undefined {
  if (vmi === undefined) return `VMI ${migration.spec.vmiName ?? ''} does not exist`;
  if (isDeleting(vmi)) return 'the VMI is being deleted';
  const { phase } = vmi.status ?? {};
  return phase === 'Succeeded' || phase === 'Failed' ? 'Cannot migrate VMI in finalized state.' : undefined;
}

/** The oldest migration of an instance wins, unless another has begun. The others fail; users may create new ones. */
function refuseSecondMigration({ migration, others }: MigrationWorld): string | undefined {
  if (hasBegun({ migration })) return undefined;
  const first = others.find((other) => hasBegun({ migration: other }) || isOlder(other, migration));
  if (first === undefined) return undefined;
  return (
    `in-flight migration detected. Active migration job (${first.metadata.uid}) is currently already in progress ` +
    `for VMI ${migration.spec.vmiName ?? ''}.`
  );
}

function isOlder({ metadata: a }: StoredMigration, { metadata: b }: StoredMigration): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp;
  return a.name < b.name;
}

function refuseUnmigratable(world: MigrationWorld): string | undefined {
  const migratable = findCondition(world.vmi?.status?.conditions, 'LiveMigratable');
  if (!hasBegun(world) && migratable?.status === 'False') {
    return `Cannot migrate VMI, Reason: ${migratable.reason ?? ''}, Message: ${migratable.message ?? ''}`;
  }
  // Before the guest runs, its claims may not be bound yet.
  return world.vmi?.status?.phase === 'Running' ? checkVolumesCanMove(world) : undefined;
}

function refuseEndedSource(world: MigrationWorld): string | undefined {
  const { sourcePod } = world;
  if (sourcePod === undefined)
    return hasBegun(world) ? 'the virt-launcher pod of the guest does not exist any more' : undefined;
  const isEnding = isDeleting(sourcePod) || hasEnded(sourcePod);
  return isEnding ? `the virt-launcher pod ${sourcePod.metadata.name} of the guest is ending` : undefined;
}

function refuseLostTarget(world: MigrationWorld): string | undefined {
  if (!hasBegun(world)) return undefined;
  const { targetPod, migration } = world;
  const { targetPod: name = '', sourcePod } = migrationStateOf(world);
  if (name === sourcePod) return `the name ${name} of the target pod is already in use`;
  if (targetPod === undefined) {
    return phaseRank(migrationPhaseOf(migration)) > phaseRank('Scheduling')
      ? `the target pod ${name} does not exist any more`
      : targetDeadline(world)?.exceeded;
  }
  if (isDeleting(targetPod)) return `the target pod ${name} is being deleted`;
  if (!hasEnded(targetPod)) return targetDeadline(world)?.exceeded;
  const { reason, message } = targetPod.status ?? {};
  return `the target pod ${name} has ended: ${[reason, message].filter(Boolean).join(', ') || 'the reason is unknown'}`;
}
