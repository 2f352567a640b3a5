/**
 * Computes the phase of an instance from its launcher pod. A phase only goes forward, and a final phase never changes.
 * If the guest has migrated, or may have, the end of its pod does not count: the phase stays until the migration is
 * decided, and the instance then has another pod.
 *
 *   Pending ──pod created──► Scheduling ──bound to a node──► Scheduled ──guest runs──► Running
 *      claims are missing       └──────────────┴──────────────────┴─────┴──► Succeeded: the guest shut down
 *                                                                       └──► Failed: crashed, killed, pod gone, node lost
 */
import { isMigrating } from '#api/migration/migration-state.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER, UNREADY_REASON } from '#api/names.ts';
import { hasCommitted, hasLeft } from '#controllers/shared/launcher/migration-commit.ts';
import type { VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { disruptionReason, hasEnded } from '#kube/pod-phase.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

export interface PhaseView {
  readonly phase: VmiPhase;
  readonly reason?: string;
  /** The message of the Event that reports the phase. */
  readonly message?: string;
}

const RANK: Readonly<Record<string, number>> = { Pending: 0, Scheduling: 1, Scheduled: 2, Running: 3 };

export function vmiPhaseOf(world: VmiWorld): PhaseView {
  const { phase: before, reason } = world.vmi.status ?? {};
  if (before === 'Succeeded' || before === 'Failed') return { phase: before, reason };
  if (isMigrationUndecided(world)) return { phase: before ?? 'Running' };
  const pod = world.pod ?? world.lastPod;
  if (pod === undefined) return phaseWithoutPod(before);
  if (hasEnded(pod)) return phaseOfEndedPod(pod);
  if (isNodeLost(world)) {
    const node = pod.spec.nodeName ?? '';
    return { phase: 'Failed', reason: 'NodeLost', message: `Node ${node} is not reachable; its guest is lost.` };
  }
  const now = phaseOfLivePod(pod);
  return { phase: (RANK[before ?? ''] ?? -1) > RANK[now]! ? before! : now };
}

function phaseWithoutPod(before: VmiPhase | undefined): PhaseView {
  if (before === undefined || before === 'Pending') return { phase: 'Pending' };
  return { phase: 'Failed', reason: 'PodGone', message: 'The virt-launcher pod is gone; its guest is lost.' };
}

function phaseOfEndedPod(pod: Pod): PhaseView {
  const { phase, reason, message } = pod.status ?? {};
  if (phase === 'Succeeded') return { phase };
  if (isGarbageCollected(pod)) {
    const node = pod.spec.nodeName ?? '';
    return { phase: 'Failed', reason: 'NodeLost', message: `Node ${node} no longer exists; its guest is lost.` };
  }
  const ended = pod.status?.containerStatuses?.find(({ name }) => name === COMPUTE_CONTAINER)?.state?.terminated;
  return { phase: 'Failed', reason: reason || ended?.reason, message: message || ended?.message };
}

/**
 * Reports whether a migration must decide the phase: the guest is on the target, or its source node is not reachable.
 */
function isMigrationUndecided(world: VmiWorld): boolean {
  const { migrationState } = world.vmi.status ?? {};
  if (!isMigrating(migrationState)) return false;
  const uid = migrationState?.migrationUid;
  const source = world.pod ?? world.lastPod;
  if (hasLeft(source, uid) || hasCommitted(world.targetPod, uid)) return true;
  return isNodeLost(world) || (source !== undefined && hasEnded(source) && isGarbageCollected(source));
}

/** Reports whether the pod was ended by the pod garbage collector because its node is gone. */
function isGarbageCollected(pod: Pod): boolean {
  return disruptionReason(pod) === 'DeletionByPodGC';
}

/** Reports whether the pod was evicted from an unreachable node: no node agent will report how the guest ended. */
function isNodeLost({ pod, isNodeReachable }: VmiWorld): boolean {
  return pod !== undefined && !isNodeReachable && disruptionReason(pod) !== undefined;
}

function phaseOfLivePod({ spec, status }: Pod): 'Scheduling' | 'Scheduled' | 'Running' {
  if (!spec.nodeName) return 'Scheduling';
  const ready = findCondition(status?.conditions, 'Ready');
  // A guest that fails its readiness probe still runs.
  const isRunning = ready?.status === 'True' || ready?.reason === UNREADY_REASON;
  return status?.phase === 'Running' && isRunning ? 'Running' : 'Scheduled';
}
