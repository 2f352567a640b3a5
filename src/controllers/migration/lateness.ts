/** How long the target pod may take until it waits for the guest. Pure. */
import { hasBegun, type MigrationWorld } from '#controllers/migration/migration-world.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

const UNSCHEDULABLE_MS = 5 * 60_000;
const PENDING_MS = 15 * 60_000;

export interface Lateness {
  /** Why, once it took too long. */
  readonly late?: string;
  /** What is in the way until then, where that is known. */
  readonly waits?: string;
  /** Until it takes too long. */
  readonly leftMs: number;
}

/** undefined where nothing is waited for. */
export function lateness(world: MigrationWorld): Lateness | undefined {
  const { targetPod, now } = world;
  if (!hasBegun(world) || isUp(targetPod)) return undefined;
  const sinceMs = now - beginOf(world);
  const refused = unschedulable(targetPod);
  if (refused !== undefined) {
    const late = `no node takes the target pod, for 5 minutes now: ${refused}`;
    return { ...within(UNSCHEDULABLE_MS - sinceMs, late), waits: `no node takes the target pod yet: ${refused}` };
  }
  return within(PENDING_MS - sinceMs, 'the target pod was not ready within 15 minutes');
}

function within(leftMs: number, late: string): Lateness {
  return leftMs > 0 ? { leftMs } : { late, leftMs: 0 };
}

function isUp(pod: Pod | undefined): boolean {
  return pod?.status?.phase !== undefined && pod.status.phase !== 'Pending';
}

/** Pods tell whole seconds; one that could not be made yet counts from when it should have been. */
function beginOf({ targetPod, migration, now }: MigrationWorld): number {
  const scheduling = migration.status?.phaseTransitionTimestamps?.find(({ phase }) => phase === 'Scheduling');
  const begin = targetPod?.metadata.creationTimestamp ?? scheduling?.phaseTransitionTimestamp;
  return begin === undefined ? now : Date.parse(begin);
}

function unschedulable(pod: Pod | undefined): string | undefined {
  const scheduled = findCondition(pod?.status?.conditions, 'PodScheduled');
  return scheduled?.status === 'False' ? (scheduled.message ?? scheduled.reason ?? '') : undefined;
}
