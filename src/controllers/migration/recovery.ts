/** What people decide about a guest of which no node can say where it is (api/migration-recovery.ts). Pure. */
import { recoveryOf } from '#api/migration-recovery.ts';
import { RECOVERY_ANNOTATION } from '#api/names.ts';
import { recordOf, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import type { Outcome } from '#controllers/migration/outcome.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { EventNote } from '#runtime/events.ts';

/** The reason of the Event by which that is told. */
export const RECOVERED = 'MigrationRecovered';

export const RECOVERY_HELP = `say where it is by the annotation ${RECOVERY_ANNOTATION} (source or target), once the other node certainly does not run it`;

export function recovered(world: MigrationWorld, unknowable: string): Outcome {
  const { sourceNode = '', targetNode = '' } = recordOf(world);
  const decided = `it was decided by the annotation ${RECOVERY_ANNOTATION} that the guest`;
  switch (recoveryOf(world.migration)) {
    case 'source': {
      const why = `${decided} stays on node ${sourceNode}`;
      return { is: 'aborted', why, note: noteOf(why, `node ${targetNode} does not run it`) };
    }
    case 'target': {
      const fault = absence(world);
      if (fault !== undefined) {
        return { is: 'undecided', unknowable: `${unknowable}. It cannot be decided that the guest went: ${fault}` };
      }
      const why = `${decided} went to node ${targetNode}`;
      return { is: 'committed', note: noteOf(why, `node ${sourceNode} does not run it any more`) };
    }
    default:
      return { is: 'undecided', unknowable };
  }
}

/**
 * Why it cannot be at the target. An agent to which not everything came says so before its source is given up: of one
 * that answers, and has not said so, it is certain that it has all of the guest.
 */
function absence(world: MigrationWorld): string | undefined {
  const { targetPod, targetAnswers } = world;
  const { targetNode = '', targetPod: name = '' } = recordOf(world);
  if (!targetAnswers) return `node ${targetNode} does not answer either`;
  const isThere = targetPod !== undefined && !hasEnded(targetPod);
  return isThere ? undefined : `the pod ${name} that was to get it is gone`;
}

function noteOf(why: string, duty: string): EventNote {
  return { type: 'Warning', reason: RECOVERED, message: `I${why.slice(1)}. Make sure that ${duty}` };
}
