/** The time limit for the target pod: from its creation until it is ready to receive the guest. Pure. */
import { hasBegun, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

const UNSCHEDULABLE_MS = 5 * 60_000;
const PENDING_MS = 15 * 60_000;

interface TargetDeadline {
  /** Failure message. Set once the limit is exceeded. */
  readonly exceeded?: string;
  /** Cause of the delay, if known. */
  readonly delay?: string;
  /** Time until the limit is exceeded. */
  readonly remainingMs: number;
}

/** Returns undefined if the migration has not begun or the target pod has started. */
export function targetDeadline(world: MigrationWorld): TargetDeadline | undefined {
  const { targetPod, now } = world;
  if (!hasBegun(world) || hasStarted(targetPod)) return undefined;
  const sinceMs = now - startOf(world);
  const reason = unschedulableReason(targetPod);
  if (reason !== undefined) {
    const exceeded = `the target pod could not be scheduled within 5 minutes: ${reason}`;
    return {
      ...deadlineIn(UNSCHEDULABLE_MS - sinceMs, exceeded),
      delay: `the target pod cannot be scheduled yet: ${reason}`,
    };
  }
  return deadlineIn(PENDING_MS - sinceMs, 'the target pod was not ready within 15 minutes');
}

function deadlineIn(remainingMs: number, exceeded: string): TargetDeadline {
  return remainingMs > 0 ? { remainingMs } : { exceeded, remainingMs: 0 };
}

function hasStarted(pod: Pod | undefined): boolean {
  return pod?.status?.phase !== undefined && pod.status.phase !== 'Pending';
}

/** Returns the start of the limit: the creation of the pod or, if it could not be created yet, the first attempt. */
function startOf({ targetPod, migration, now }: MigrationWorld): number {
  const scheduling = migration.status?.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Scheduling');
  const start = targetPod?.metadata.creationTimestamp ?? scheduling?.phaseTransitionTimestamp;
  return start === undefined ? now : Date.parse(start);
}

function unschedulableReason(pod: Pod | undefined): string | undefined {
  const scheduled = findCondition(pod?.status?.conditions, 'PodScheduled');
  return scheduled?.status === 'False' ? (scheduled.message ?? scheduled.reason ?? '') : undefined;
}
