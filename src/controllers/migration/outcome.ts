/**
 * The outcome of a migration, from what the agents report in the progress and the pods, and from earlier decisions.
 * Nothing is guessed: state and disks are only removed once an agent, or a user, has said which node has the guest.
 * Pure.
 */
import { MIGRATION_ABORTED_REASON } from '#api/names.ts';
import {
  isAnnounced,
  reportedProgressOf,
  migrationStateOf,
  type MigrationOutcome,
  type MigrationWorld,
} from '#controllers/migration/migration-world.ts';
import { recoveredOutcome, RECOVERY_HELP } from '#controllers/migration/recovery.ts';
import { CANCELLED, refuseMigration } from '#controllers/migration/refuse-migration.ts';
import { hasCommitted, hasLeft } from '#controllers/shared/launcher/migration-commit.ts';
import { disruptionReason, hasEnded } from '#kube/pod-phase.ts';

export function findOutcome(world: MigrationWorld): MigrationOutcome {
  const { completed, failed, failureReason = '' } = migrationStateOf(world);
  if (completed === true) return failed === true ? { is: 'aborted', why: failureReason } : { is: 'committed' };
  if (isCommitted(world)) return { is: 'committed' };
  const why = isAnnounced(world) ? findAbortReason(world) : refuseMigration(world);
  if (why !== undefined) return { is: 'aborted', why };
  const whyUnknown = isAnnounced(world) ? findUnknownReason(world) : undefined;
  return whyUnknown === undefined ? { is: 'undecided' } : recoveredOutcome(world, whyUnknown);
}

function isCommitted(world: MigrationWorld): boolean {
  const { uid } = world.migration.metadata;
  if (reportedProgressOf(world)?.phase === 'Committed') return true;
  return isAnnounced(world) && (hasCommitted(world.targetPod, uid) || hasLeft(world.sourcePod, uid));
}

/** Returns why an announced migration has failed, or undefined if it has not. */
function findAbortReason(world: MigrationWorld): string | undefined {
  const { sourcePod, targetPod } = world;
  const progress = reportedProgressOf(world);
  if (progress?.phase === 'Failed') {
    return (
      progress.message ||
      (migrationStateOf(world).abortRequested === true ? CANCELLED : 'the source node aborted the migration')
    );
  }
  if (targetPod !== undefined && hasEnded(targetPod) && targetPod.status?.reason === MIGRATION_ABORTED_REASON) {
    return targetPod.status.message || 'the target node did not receive the guest';
  }
  // A pod that the garbage collector removed from a lost node says nothing about how the guest ended.
  if (sourcePod === undefined || !hasEnded(sourcePod) || disruptionReason(sourcePod) === 'DeletionByPodGC') {
    return undefined;
  }
  return 'the guest ended on the source node';
}

function findUnknownReason({ sourcePod, isSourceResponding, ...world }: MigrationWorld): string | undefined {
  const { sourceNode = '', targetNode = '' } = migrationStateOf(world);
  const unknown = `It is unknown whether the guest is on node ${sourceNode} or has moved to node ${targetNode}`;
  if (!isSourceResponding) {
    return `${unknown}: node ${sourceNode} does not respond. The migration continues when one of the two nodes reports the outcome: bring node ${sourceNode} back, or ${RECOVERY_HELP}`;
  }
  if (sourcePod !== undefined) return undefined;
  return `${unknown}: the source pod ${migrationStateOf(world).sourcePod ?? ''} does not exist any more. The migration continues when node ${targetNode} reports the outcome; or ${RECOVERY_HELP}`;
}
