/** The status of a restore: in progress with what it waits for, failed, or complete. Pure. */
import type { RestoreStatus } from '#api/virtual-machine-restore/kind.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export const COMPLETED_REASON = 'VirtualMachineRestoreComplete';
const FAILED_REASON = 'VirtualMachineRestoreError';

type Status = Readonly<Record<string, unknown>>;

interface RestoreProgress {
  /** Reason of the conditions, in CamelCase. */
  readonly reason: string;
  /** Message of the conditions. */
  readonly message: string;
  /** New facts for the status. */
  readonly newStatus?: Pick<RestoreStatus, 'targetUID' | 'restores' | 'marksClaims' | 'replacingClaims'>;
}

interface ProgressPlan extends RestoreProgress {
  readonly changes?: readonly Change[];
  readonly events?: readonly EventNote[];
  readonly requeueAfterMs?: number;
}

/** Returns the plan of a restore in progress. A watched object or the requeue time triggers the next reconcile. */
export function continueRestore(
  world: RestoreWorld,
  { changes = [], events, requeueAfterMs, ...progress }: ProgressPlan,
): Plan {
  return { changes, status: progressStatus(world, progress), events, requeueAfterMs };
}

/** Returns a plan of writes that the API may refuse: concludeRestore reports it. The status is not written before. */
export function tryChanges(changes: readonly Change[]): Plan {
  return { changes, continueOnError: true };
}

export function progressStatus(world: RestoreWorld, { reason, message, newStatus }: RestoreProgress): Status {
  return buildRestoreStatus(world, { ...newStatus, complete: false }, [
    { type: 'Progressing', status: 'True', reason, message },
    { type: 'Ready', status: 'False', reason, message },
  ]);
}

export function failRestore(world: RestoreWorld, reason: string, message: string): Plan {
  const events: EventNote[] = [{ type: 'Warning', reason: FAILED_REASON, message }];
  return { changes: [], status: failedStatus(world, reason, message), events };
}

export function failedStatus(world: RestoreWorld, reason: string, message: string): Status {
  return buildRestoreStatus(world, { complete: false }, [
    { type: 'Progressing', status: 'False', reason, message },
    { type: 'Ready', status: 'False', reason, message },
    { type: 'Failure', status: 'True', reason, message },
  ]);
}

export function completeRestore(world: RestoreWorld, moreEvents: readonly EventNote[] = []): Plan {
  const complete = { reason: 'OperationComplete', message: 'Operation complete' };
  const status = buildRestoreStatus(world, { complete: true, restoreTime: timestamp(world.now) }, [
    { type: 'Progressing', status: 'False', ...complete },
    { type: 'Ready', status: 'True', ...complete },
  ]);
  const message = `Successfully completed VirtualMachineRestore ${world.restore.metadata.name}`;
  return { changes: [], status, events: [{ type: 'Normal', reason: COMPLETED_REASON, message }, ...moreEvents] };
}

function buildRestoreStatus(
  { restore, now }: RestoreWorld,
  fields: RestoreStatus,
  next: readonly NextCondition[],
): Status {
  let conditions = (restore.status?.conditions ?? []) as readonly Condition[];
  for (const condition of next) conditions = setCondition(conditions, condition, timestamp(now));
  return { ...restore.status, ...fields, conditions };
}
