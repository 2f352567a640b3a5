/** Why a migration of which the agents do not know yet is given up. From then on only they can say so. Pure. */
import {
  hasBegun,
  phaseOf,
  rankOf,
  recordOf,
  type Migration,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { stayingVolume } from '#controllers/migration/moving-volumes.ts';
import { lateness } from '#controllers/migration/lateness.ts';
import { findCondition } from '#kube/conditions.ts';
import { isDeleting } from '#kube/meta.ts';
import { hasEnded } from '#kube/pod-phase.ts';

export const CANCELLED = 'the migration was cancelled';

type Check = (world: MigrationWorld) => string | undefined;

const checks: readonly Check[] = [cancelled, endedInstance, otherMigration, unfitInstance, endedSource, lostTarget];

export function refusalOf(world: MigrationWorld): string | undefined {
  for (const check of checks) {
    const refusal = check(world);
    if (refusal !== undefined) return refusal;
  }
  return undefined;
}

function cancelled({ migration }: MigrationWorld): string | undefined {
  return isDeleting(migration) ? CANCELLED : undefined;
}

function endedInstance({ vmi, migration }: MigrationWorld): string | undefined {
  if (vmi === undefined) return `VMI ${migration.spec.vmiName ?? ''} does not exist`;
  if (isDeleting(vmi)) return 'the VMI is being deleted';
  const { phase } = vmi.status ?? {};
  return phase === 'Succeeded' || phase === 'Failed' ? 'Cannot migrate VMI in finalized state.' : undefined;
}

/** The oldest goes first, unless another has begun; it is for people to ask again. */
function otherMigration({ migration, others }: MigrationWorld): string | undefined {
  if (hasBegun({ migration })) return undefined;
  const first = others.find((other) => hasBegun({ migration: other }) || isOlder(other, migration));
  if (first === undefined) return undefined;
  return (
    `in-flight migration detected. Active migration job (${first.metadata.uid}) is currently already in progress ` +
    `for VMI ${migration.spec.vmiName ?? ''}.`
  );
}

function isOlder({ metadata: a }: Migration, { metadata: b }: Migration): boolean {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp;
  return a.name < b.name;
}

function unfitInstance(world: MigrationWorld): string | undefined {
  const migratable = findCondition(world.vmi?.status?.conditions, 'LiveMigratable');
  if (!hasBegun(world) && migratable?.status === 'False') {
    return `Cannot migrate VMI, Reason: ${migratable.reason ?? ''}, Message: ${migratable.message ?? ''}`;
  }
  // Claims of a guest that does not run yet may be without a volume for a while.
  return world.vmi?.status?.phase === 'Running' ? stayingVolume(world) : undefined;
}

function endedSource(world: MigrationWorld): string | undefined {
  const { sourcePod } = world;
  if (sourcePod === undefined) return hasBegun(world) ? 'the virt-launcher pod of the guest is gone' : undefined;
  const ends = isDeleting(sourcePod) || hasEnded(sourcePod);
  return ends ? `the virt-launcher pod ${sourcePod.metadata.name} of the guest comes to its end` : undefined;
}

function lostTarget(world: MigrationWorld): string | undefined {
  if (!hasBegun(world)) return undefined;
  const { targetPod, migration } = world;
  const { targetPod: name = '', sourcePod } = recordOf(world);
  if (name === sourcePod) return `the name ${name} of the target pod is taken`;
  if (targetPod === undefined) {
    return rankOf(phaseOf(migration)) > rankOf('Scheduling') ? `the target pod ${name} is gone` : lateness(world)?.late;
  }
  if (isDeleting(targetPod)) return `the target pod ${name} is being deleted`;
  if (!hasEnded(targetPod)) return lateness(world)?.late;
  const { reason, message } = targetPod.status ?? {};
  return `the target pod ${name} has ended: ${[reason, message].filter(Boolean).join(', ') || 'for no known reason'}`;
}
