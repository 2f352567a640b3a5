/** What a restore says of itself: it goes on and what it waits for, it has failed, or it is complete. Pure. */
import type { RestoreStatus } from '#api/virtual-machine-restore/kind.ts';
import type { RestoreWorld } from '#controllers/restore/restore-world.ts';
import { setCondition, type Condition, type NextCondition } from '#kube/conditions.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export const COMPLETED = 'VirtualMachineRestoreComplete';
export const FAILED = 'VirtualMachineRestoreError';

type Status = Readonly<Record<string, unknown>>;

interface Telling {
  /** CamelCase, for programs. */
  readonly reason: string;
  /** For people. */
  readonly message: string;
  /** What else is known from now on. */
  readonly learned?: Pick<RestoreStatus, 'targetUID' | 'restores'>;
}

interface GoingOn extends Telling {
  readonly changes?: readonly Change[];
  readonly events?: readonly EventNote[];
  readonly requeueAfterMs?: number;
}

/** It is not done yet, and something that it waits for will wake it. */
export function goesOn(world: RestoreWorld, { changes = [], events, requeueAfterMs, ...telling }: GoingOn): Plan {
  return { changes, status: progressing(world, telling), events, requeueAfterMs };
}

/** Writes that the API may refuse: then the status says so (concludeRestore). It is not written before them. */
export function tries(changes: readonly Change[]): Plan {
  return { changes, goOn: true };
}

export function progressing(world: RestoreWorld, { reason, message, learned }: Telling): Status {
  return statusWith(world, { ...learned, complete: false }, [
    { type: 'Progressing', status: 'True', reason, message },
    { type: 'Ready', status: 'False', reason, message },
  ]);
}

export function fails(world: RestoreWorld, reason: string, message: string): Plan {
  const events: EventNote[] = [{ type: 'Warning', reason: FAILED, message }];
  return { changes: [], status: failed(world, reason, message), events };
}

export function failed(world: RestoreWorld, reason: string, message: string): Status {
  return statusWith(world, { complete: false }, [
    { type: 'Progressing', status: 'False', reason, message },
    { type: 'Ready', status: 'False', reason, message },
    { type: 'Failure', status: 'True', reason, message },
  ]);
}

export function completes(world: RestoreWorld, besides: readonly EventNote[] = []): Plan {
  const telling = { reason: 'OperationComplete', message: 'Operation complete' };
  const status = statusWith(world, { complete: true, restoreTime: timestamp(world.now) }, [
    { type: 'Progressing', status: 'False', ...telling },
    { type: 'Ready', status: 'True', ...telling },
  ]);
  const message = `Successfully completed VirtualMachineRestore ${world.restore.metadata.name}`;
  return { changes: [], status, events: [{ type: 'Normal', reason: COMPLETED, message }, ...besides] };
}

function statusWith({ restore, now }: RestoreWorld, said: RestoreStatus, next: readonly NextCondition[]): Status {
  let conditions = (restore.status?.conditions ?? []) as readonly Condition[];
  for (const condition of next) conditions = setCondition(conditions, condition, timestamp(now));
  return { ...restore.status, ...said, conditions };
}
