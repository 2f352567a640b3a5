/**
 * Decides the next step for a pod on a node that is lost or has NoExecute taints. Pure.
 *
 *   node lost: Ready=False at once ──after tolerationSeconds──► DisruptionTarget, deleted
 *                                  └─node reports again before: the deletion is cancelled
 */
import { hasEnded } from '#kube/pod-phase.ts';
import {
  isWatchedLongEnough,
  GRACE_MS,
  type NodeHealth,
  type Outage,
  readyCondition,
} from '#engine/controllers/node-lifecycle/health.ts';
import { isLifecycleTaint } from '#engine/controllers/node-lifecycle/node-taints.ts';
import { type EngineNode, type EnginePod, ENGINE_PODS } from '#engine/controllers/kinds.ts';
import type { Taint, Toleration } from '#engine/controllers/placement/taints.ts';
import { tolerates } from '#engine/controllers/placement/taints.ts';
import { findCondition } from '#kube/conditions.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { EventNote } from '#runtime/events.ts';
import type { Change, Plan } from '#runtime/plan.ts';

export interface PodOnNodeWorld {
  readonly pod: Stored<EnginePod>;
  readonly node: Stored<EngineNode>;
  readonly health: NodeHealth;
  readonly outage: Outage;
  /** Returns the time at which the taint was added to the node. */
  taintedSinceMs(taint: Taint): number;
  /** True if the last decision scheduled the pod's eviction. */
  readonly wasEvictionPending: boolean;
  readonly nowMs: number;
}

const EVICTION = 'TaintManagerEviction';
const OUTAGE_RECHECK_MS = 5000;

export function decidePodOnNode(world: PodOnNodeWorld): Plan {
  const { pod, nowMs, outage } = world;
  const { deletionTimestamp } = pod.metadata;
  const dueMs = deletionTimestamp === undefined && !hasEnded(pod) ? evictionTimeMs(world) : undefined;
  const unready = markNotReady(world);
  const events = notReadyEvents(unready);
  if (dueMs === undefined) {
    return {
      changes: unready,
      events: [...events, ...cancellationEvents(world)],
      requeueAfterMs: untilTrustedMs(world),
    };
  }
  if (outage === 'full') return { changes: unready, events, requeueAfterMs: OUTAGE_RECHECK_MS };
  if (dueMs > nowMs)
    return { changes: unready, events, requeueAfterMs: Math.min(dueMs - nowMs, untilTrustedMs(world) ?? Infinity) };
  return { changes: [...unready, ...evictPod(pod, nowMs)], events };
}

/** Returns the time until this controller has watched the node long enough to trust its state; undefined = long enough. */
function untilTrustedMs({ health, nowMs }: PodOnNodeWorld): number | undefined {
  return isWatchedLongEnough(health, nowMs) ? undefined : health.sinceMs + GRACE_MS - nowMs;
}

/** Returns the time at which the pod is evicted; undefined = never. */
export function evictionTimeMs({ pod, node, health, taintedSinceMs }: PodOnNodeWorld): number | undefined {
  let dueMs: number | undefined;
  for (const taint of node.spec?.taints ?? []) {
    if (taint.effect !== 'NoExecute') continue;
    const seconds = toleratedSeconds(pod.spec.tolerations ?? [], taint);
    if (seconds === undefined) continue;
    const tolerated = taintedSinceMs(taint) + Math.max(0, seconds) * 1000;
    // The taint may be outdated if this controller has just started, so the grace period is waited for first.
    const ownDue = isLifecycleTaint(taint) ? Math.max(tolerated, health.sinceMs + GRACE_MS) : tolerated;
    dueMs = Math.min(dueMs ?? ownDue, ownDue);
  }
  return dueMs;
}

/** Returns how long the taint is tolerated; undefined = forever. */
function toleratedSeconds(tolerations: readonly Toleration[], taint: Taint): number | undefined {
  const toleration = tolerations.find((one) => tolerates(one, taint));
  return toleration === undefined ? 0 : toleration.tolerationSeconds;
}

function evictPod({ metadata }: Stored<EnginePod>, nowMs: number): Change[] {
  const { namespace, name, uid } = metadata;
  const target = { type: ENGINE_PODS, name: { namespace, name }, uid };
  const condition = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByTaintManager',
    message: 'Taint manager: deleting due to NoExecute taint',
    lastTransitionTime: timestamp(nowMs),
  };
  const why = `Marking for deletion Pod ${namespace}/${name}`;
  const patch = { type: 'strategic' as const, body: { status: { conditions: [condition] } } };
  return [
    { ...target, do: 'patch', subresource: 'status', patch, why },
    { ...target, do: 'delete', reason: EVICTION, why },
  ];
}

/**
 * Sets condition Ready of a pod to False if its node is not ready. A pod on an unreachable node may still run, but must
 * not receive traffic. If the node itself reports NotReady, a pod that became ready later is left alone.
 */
function markNotReady({ pod, node, health, nowMs }: PodOnNodeWorld): Change[] {
  const ready = findCondition(pod.status?.conditions, 'Ready');
  const nodeReady = readyCondition(node);
  if (ready?.status !== 'True' || nodeReady === undefined || nodeReady.status === 'True') return [];
  const since = ready.lastTransitionTime ?? '';
  const isConclusive =
    nodeReady.status === 'Unknown' ? isWatchedLongEnough(health, nowMs) : since <= (nodeReady.lastTransitionTime ?? '');
  if (!isConclusive) return [];
  const { namespace, name, uid } = pod.metadata;
  const condition = { type: 'Ready', status: 'False', lastTransitionTime: timestamp(nowMs) };
  const patch = { type: 'strategic' as const, body: { status: { conditions: [condition] } } };
  const why = 'the node of the pod is not ready';
  return [{ do: 'patch', type: ENGINE_PODS, name: { namespace, name }, uid, subresource: 'status', patch, why }];
}

function notReadyEvents(marks: readonly Change[]): EventNote[] {
  return marks.map(() => ({ type: 'Warning', reason: 'NodeNotReady', message: 'Node is not ready' }));
}

function cancellationEvents({ pod, wasEvictionPending }: PodOnNodeWorld): EventNote[] {
  const { namespace, name, deletionTimestamp } = pod.metadata;
  if (!wasEvictionPending || deletionTimestamp !== undefined) return [];
  return [{ type: 'Normal', reason: EVICTION, message: `Cancelling deletion of Pod ${namespace}/${name}` }];
}
