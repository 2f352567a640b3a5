/**
 * What keeps the launcher pod from being made: an earlier guest of the name that may still be on its way, claims of disks
 * that are missing, and persistent state without a place. Pure.
 */
import { STATE_CONFLICT } from '#api/state-conflict.ts';
import { missingClaims, type Missing } from '#controllers/vmi/missing-claims.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { objectKey } from '#client/object-key.ts';

type View = Pick<VmiWorld, 'vmi' | 'claims' | 'state' | 'isMigrationActive'>;

export const FAILED_STATE_CREATE = 'FailedBackendStorageCreate';
const STATE_NOT_READY = 'BackendStorageNotReady';

/** undefined when the pod can be made, or first the claim for its state. */
export function startObstacle(view: View): Missing | undefined {
  return movingGuest(view) ?? startFault(view) ?? statePending(view);
}

/** Where the newest state is, and whether a guest still has it, is known when the migration is over. */
function movingGuest({ isMigrationActive }: View): Missing | undefined {
  return isMigrationActive ? { reason: 'ActiveMigration', message: 'active migration exists' } : undefined;
}

/** What does not pass by itself, and is told in an Event, too. */
export function startFault(view: View): Missing | undefined {
  return missingClaims(view) ?? stateFault(view);
}

function stateFault({ state }: View): Missing | undefined {
  if (state?.is === 'disputed') return { reason: STATE_CONFLICT, message: state.problem };
  if (state?.is === 'impossible') return { reason: FAILED_STATE_CREATE, message: state.problem };
  if (state?.is !== 'there' || state.claim.status?.phase !== 'Lost') return undefined;
  return {
    reason: STATE_NOT_READY,
    message: `backend storage PVC lost: the volume of ${objectKey(state.claim)} is gone`,
  };
}

/** One that is bound as soon as it is made says on which node the pod has to be. */
function statePending({ state }: View): Missing | undefined {
  if (state?.is !== 'there' || state.waitsForConsumer || state.claim.status?.phase === 'Bound') return undefined;
  return { reason: STATE_NOT_READY, message: `PVC pending: ${objectKey(state.claim)} is not bound yet` };
}
