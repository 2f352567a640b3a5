/**
 * The phase of an instance, from its launcher pod. It only goes forward, and what has ended stays so. Of a guest that has
 * gone to another node, or may have, the end of its pod tells nothing: the instance stays as it is until the migration is
 * decided, and then has another pod.
 *
 *   Pending ──pod made──► Scheduling ──bound to a node──► Scheduled ──guest runs──► Running
 *      claims are missing    └──────────────┴──────────────────┴─────┴──► Succeeded: the guest shut down
 *                                                                    └──► Failed: crashed, killed, pod gone, node lost
 */
import { isMigrating } from '#api/migration-state.ts';
import type { VmiPhase } from '#api/virtual-machine-instance/status.ts';
import { COMPUTE_CONTAINER, UNREADY_REASON } from '#api/names.ts';
import { hasCommitted, hasLeft } from '#controllers/vmi/committed.ts';
import { type VmiWorld } from '#controllers/vmi/vmi-world.ts';
import { hasEnded } from '#kube/pod-phase.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Pod } from '#kube/core-kinds.ts';

export interface PhaseView {
  readonly phase: VmiPhase;
  readonly reason?: string;
  /** For people; told once, in an Event. */
  readonly message?: string;
}

const RANK: Readonly<Record<string, number>> = { Pending: 0, Scheduling: 1, Scheduled: 2, Running: 3 };

export function isFinal(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

export function phaseOf(world: VmiWorld): PhaseView {
  const { phase: before, reason } = world.vmi.status ?? {};
  if (before === 'Succeeded' || before === 'Failed') return { phase: before, reason };
  if (isUpToMigration(world)) return { phase: before ?? 'Running' };
  const pod = world.pod ?? world.lastPod;
  if (pod === undefined) return withoutPod(before);
  if (hasEnded(pod)) return endOf(pod);
  if (isLost(world)) {
    const node = pod.spec.nodeName ?? '';
    return { phase: 'Failed', reason: 'NodeLost', message: `Node ${node} is lost, and the guest with it.` };
  }
  const now = aliveIn(pod);
  return { phase: (RANK[before ?? ''] ?? -1) > RANK[now]! ? before! : now };
}

function withoutPod(before: VmiPhase | undefined): PhaseView {
  if (before === undefined || before === 'Pending') return { phase: 'Pending' };
  return { phase: 'Failed', reason: 'PodGone', message: 'The virt-launcher pod is gone, and the guest with it.' };
}

function endOf(pod: Pod): PhaseView {
  const { phase, reason, message } = pod.status ?? {};
  if (phase === 'Succeeded') return { phase };
  if (isCollected(pod)) {
    const node = pod.spec.nodeName ?? '';
    return { phase: 'Failed', reason: 'NodeLost', message: `Node ${node} no longer exists, nor does the guest.` };
  }
  const ended = pod.status?.containerStatuses?.find(({ name }) => name === COMPUTE_CONTAINER)?.state?.terminated;
  return { phase: 'Failed', reason: reason || ended?.reason, message: message || ended?.message };
}

/** The guest is at the target, or nobody can tell because its node does not answer. */
function isUpToMigration(world: VmiWorld): boolean {
  const { migrationState } = world.vmi.status ?? {};
  if (!isMigrating(migrationState)) return false;
  const uid = migrationState?.migrationUid;
  const source = world.pod ?? world.lastPod;
  if (hasLeft(source, uid) || hasCommitted(world.targetPod, uid)) return true;
  return isLost(world) || (source !== undefined && hasEnded(source) && isCollected(source));
}

/** Its node is gone, and the pod was ended by somebody who never saw the guest. */
function isCollected(pod: Pod): boolean {
  return disruptionReason(pod) === 'DeletionByPodGC';
}

/** Taken off a node that nobody answers for: no agent will ever tell how the guest ended. */
function isLost({ pod, nodeAnswers }: VmiWorld): boolean {
  return pod !== undefined && !nodeAnswers && disruptionReason(pod) !== undefined;
}

export function disruptionReason({ status }: Pod): string | undefined {
  const condition = findCondition(status?.conditions, 'DisruptionTarget');
  return condition?.status === 'True' ? (condition.reason ?? '') : undefined;
}

function aliveIn({ spec, status }: Pod): 'Scheduling' | 'Scheduled' | 'Running' {
  if (!spec.nodeName) return 'Scheduling';
  const ready = findCondition(status?.conditions, 'Ready');
  // A guest that does not serve, or not yet, runs all the same.
  const runs = ready?.status === 'True' || ready?.reason === UNREADY_REASON;
  return status?.phase === 'Running' && runs ? 'Running' : 'Scheduled';
}
