/** The decision of a user about a guest whose location no node can report (api/migration/migration-recovery.ts). Pure. */
import { readRecovery } from '#api/migration/migration-recovery.ts';
import { RECOVERY_ANNOTATION } from '#api/names.ts';
import {
  migrationStateOf,
  type MigrationWorld,
  type MigrationOutcome,
} from '#controllers/migration/migration-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import type { EventNote } from '#runtime/events.ts';

/** Reason of the Event that records the decision. */
export const RECOVERED_REASON = 'MigrationRecovered';

export const RECOVERY_HELP = `set the annotation ${RECOVERY_ANNOTATION} (source or target) to where the guest is, after making sure that the other node does not run it`;

/** Returns the outcome that the user decided, or an undecided one if there is no valid decision. */
export function recoveredOutcome(world: MigrationWorld, whyUnknown: string): MigrationOutcome {
  const { sourceNode = '', targetNode = '' } = migrationStateOf(world);
  const decided = `the annotation ${RECOVERY_ANNOTATION} decided that the guest`;
  switch (readRecovery(world.migration)) {
    case 'source': {
      const why = `${decided} stays on node ${sourceNode}`;
      return { is: 'aborted', why, note: recoveryEvent(why, `node ${targetNode} does not run it`) };
    }
    case 'target': {
      const refusal = checkTargetHasGuest(world);
      if (refusal !== undefined) {
        return {
          is: 'undecided',
          whyUnknown: `${whyUnknown}. Cannot recover the guest on the target node: ${refusal}`,
        };
      }
      const why = `${decided} has moved to node ${targetNode}`;
      return { is: 'committed', note: recoveryEvent(why, `node ${sourceNode} does not run it any more`) };
    }
    default:
      return { is: 'undecided', whyUnknown };
  }
}

/**
 * Returns why the guest cannot be on the target node. A target agent that has not received everything reports that
 * before the source is given up, so one that responds and has not reported it has the whole guest.
 */
function checkTargetHasGuest(world: MigrationWorld): string | undefined {
  const { targetPod, isTargetResponding } = world;
  const { targetNode = '', targetPod: name = '' } = migrationStateOf(world);
  if (!isTargetResponding) return `node ${targetNode} does not respond either`;
  const isPresent = targetPod !== undefined && !hasEnded(targetPod);
  return isPresent ? undefined : `the target pod ${name} has ended or does not exist`;
}

function recoveryEvent(why: string, duty: string): EventNote {
  return { type: 'Warning', reason: RECOVERED_REASON, message: `T${why.slice(1)}. Make sure that ${duty}` };
}
