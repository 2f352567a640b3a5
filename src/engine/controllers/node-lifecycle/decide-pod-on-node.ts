/**
 * What happens to a pod on a node that is lost or has NoExecute taints. Pure.
 *
 *   node lost: Ready=False at once ──tolerated for tolerationSeconds──► DisruptionTarget, deleted
 *                                  └─node is back before: nothing more
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
import { type Taint, type Toleration } from '#engine/controllers/scheduler/kinds.ts';
import { tolerates } from '#engine/controllers/scheduler/tolerations.ts';
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
  /** Since when the node has the taint. */
  taintedSinceMs(taint: Taint): number;
  /** Whether its deletion was a matter of time when it was last looked at. */
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

/** When we may believe what is said of the node; undefined: now. */
function untilTrustedMs({ health, nowMs }: PodOnNodeWorld): number | undefined {
  return isWatchedLongEnough(health, nowMs) ? undefined : health.sinceMs + GRACE_MS - nowMs;
}

/** When it has to go; undefined: never. */
export function evictionTimeMs({ pod, node, health, taintedSinceMs }: PodOnNodeWorld): number | undefined {
  let dueMs: number | undefined;
  for (const taint of node.spec?.taints ?? []) {
    if (taint.effect !== 'NoExecute') continue;
    const seconds = toleratedSeconds(pod.spec.tolerations ?? [], taint);
    if (seconds === undefined) continue;
    const tolerated = taintedSinceMs(taint) + Math.max(0, seconds) * 1000;
    // What we say of nodes may date from a time when we were away ourselves.
    const ownDue = isLifecycleTaint(taint) ? Math.max(tolerated, health.sinceMs + GRACE_MS) : tolerated;
    dueMs = Math.min(dueMs ?? ownDue, ownDue);
  }
  return dueMs;
}

/** undefined: for ever. */
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

/** Who is cut off may still run, but nobody should rely on it. A node that only says so itself may differ later. */
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
  const why = 'its node is not ready';
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
