/**
 * Where the guest is, as far as anybody has said: the agents by the progress and by the pods, and we ourselves by what
 * was decided before. Nothing is guessed: the guest is at the source unless somebody says that it went, but state and
 * disks are only thrown away when somebody who knows says which. Pure.
 */
import { MIGRATION_ABORTED_REASON } from '#api/names.ts';
import { isTold, progressOf, recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { recovered, RECOVERY_HELP } from '#controllers/migration/recovery.ts';
import { CANCELLED, refusalOf } from '#controllers/migration/refusal.ts';
import { hasCommitted, hasLeft } from '#controllers/vmi/committed.ts';
import { disruptionReason } from '#controllers/vmi/phase.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { EventNote } from '#runtime/events.ts';

/** `note`: for whoever decided it, where that was no node. */
export type Outcome =
  /** The guest belongs to the target, whatever happens. */
  | { readonly is: 'committed'; readonly note?: EventNote }
  /** It stays where it is, or has ended there. */
  | { readonly is: 'aborted'; readonly why: string; readonly note?: EventNote }
  /** `unknowable`: why nobody will say, as things are. */
  | { readonly is: 'undecided'; readonly unknowable?: string };

export function outcomeOf(world: MigrationWorld): Outcome {
  const { completed, failed, failureReason = '' } = recordOf(world);
  if (completed === true) return failed === true ? { is: 'aborted', why: failureReason } : { is: 'committed' };
  if (isCommitted(world)) return { is: 'committed' };
  const why = isTold(world) ? abortion(world) : refusalOf(world);
  if (why !== undefined) return { is: 'aborted', why };
  const unknowable = isTold(world) ? silence(world) : undefined;
  return unknowable === undefined ? { is: 'undecided' } : recovered(world, unknowable);
}

function isCommitted(world: MigrationWorld): boolean {
  const { uid } = world.migration.metadata;
  if (progressOf(world)?.phase === 'Committed') return true;
  return isTold(world) && (hasCommitted(world.targetPod, uid) || hasLeft(world.sourcePod, uid));
}

/** Of a migration that the agents know of. */
function abortion(world: MigrationWorld): string | undefined {
  const { sourcePod, targetPod } = world;
  const progress = progressOf(world);
  if (progress?.phase === 'Failed') {
    return progress.message || (recordOf(world).abortRequested === true ? CANCELLED : 'the source node gave it up');
  }
  if (targetPod !== undefined && hasEnded(targetPod) && targetPod.status?.reason === MIGRATION_ABORTED_REASON) {
    return targetPod.status.message || 'the guest did not come to the target node';
  }
  // Who is taken off a node that is gone was not asked how the guest ended.
  if (sourcePod === undefined || !hasEnded(sourcePod) || disruptionReason(sourcePod) === 'DeletionByPodGC') {
    return undefined;
  }
  return 'the guest has ended at its source node';
}

function silence({ sourcePod, sourceAnswers, ...world }: MigrationWorld): string | undefined {
  const { sourceNode = '', targetNode = '' } = recordOf(world);
  const known = `It is not known whether the guest is on node ${sourceNode} or went to node ${targetNode}`;
  if (!sourceAnswers) {
    return `${known}: node ${sourceNode} does not answer. It is decided as soon as one of the two nodes can say so: bring node ${sourceNode} back, or ${RECOVERY_HELP}`;
  }
  if (sourcePod !== undefined) return undefined;
  return `${known}: the pod ${recordOf(world).sourcePod ?? ''} that had it is gone. It is decided as soon as node ${targetNode} can say so; or ${RECOVERY_HELP}`;
}
