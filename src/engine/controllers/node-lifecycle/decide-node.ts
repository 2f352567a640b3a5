/** Decides the next step for one node: sets its conditions to Unknown after the grace period, and updates its taints. Pure. */
import {
  graceMs,
  remainingGraceMs,
  type NodeHealth,
  type Outage,
  readyCondition,
} from '#engine/controllers/node-lifecycle/health.ts';
import { isLifecycleTaint, isSameTaint, wantedTaints } from '#engine/controllers/node-lifecycle/node-taints.ts';
import { type EngineNode, ENGINE_NODES } from '#engine/controllers/kinds.ts';
import { findCondition } from '#kube/conditions.ts';
import { deepEqual } from '#kube/deep.ts';
import type { Stored } from '#kube/meta.ts';
import { timestamp } from '#lib/clock.ts';
import type { Change, PatchChange, Plan } from '#runtime/plan.ts';

export interface NodeWorld {
  readonly node: Stored<EngineNode>;
  readonly health: NodeHealth;
  readonly outage: Outage;
  readonly nowMs: number;
}

/** The conditions that a node reports. NetworkUnavailable is set by the network plugin. */
const REPORTED = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'] as const;
/** During an outage a node is checked again after this time: Kubernetes' node-monitor-period. */
const OUTAGE_RECHECK_MS = 5000;

export function decideNode(world: NodeWorld): Plan {
  const { node, health, nowMs } = world;
  const left = remainingGraceMs(node, health, nowMs);
  const lost = left > 0 ? [] : lostConditions(node, nowMs);
  // Taints follow in the next reconcile. Both patches contain the resourceVersion, so the second one would conflict.
  const changes = lost.length > 0 ? [declareLost(node, lost)] : adjustTaints(world);
  const withheld = world.outage !== 'none' && readyCondition(node)?.status !== 'True';
  const next = left > 0 ? left : undefined;
  return { changes, requeueAfterMs: withheld ? Math.min(next ?? OUTAGE_RECHECK_MS, OUTAGE_RECHECK_MS) : next };
}

type NodeCondition = NonNullable<NonNullable<EngineNode['status']>['conditions']>[number];

function lostConditions({ metadata, status }: Stored<EngineNode>, nowMs: number): NodeCondition[] {
  const unknown = { status: 'Unknown', lastTransitionTime: timestamp(nowMs) } as const;
  return REPORTED.flatMap((type): NodeCondition[] => {
    const condition = findCondition(status?.conditions, type);
    if (condition === undefined) {
      const never = { reason: 'NodeStatusNeverUpdated', message: 'Kubelet never posted node status.' };
      return [{ type, ...unknown, ...never, lastHeartbeatTime: metadata.creationTimestamp }];
    }
    if (condition.status === 'Unknown') return [];
    const stopped = { reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.' };
    return [{ type, ...unknown, ...stopped }];
  });
}

function declareLost(node: Stored<EngineNode>, conditions: NodeCondition[]): Change {
  const wasReady = readyCondition(node)?.status === 'True';
  const seconds = graceMs(node) / 1000;
  const explanation = wasReady
    ? readinessChange(node, 'NodeNotReady')
    : { why: `the node has not reported for ${seconds} s` };
  return { ...patchNode(node, { status: { conditions } }), subresource: 'status', ...explanation };
}

function adjustTaints({ node, outage, nowMs }: NodeWorld): Change[] {
  const present = node.spec?.taints ?? [];
  const taints = wantedTaints(node, outage, timestamp(nowMs));
  if (deepEqual(taints, present)) return [];
  const ready = readyCondition(node)?.status;
  const untainted = present.some((taint) => isLifecycleTaint(taint) && !taints.some((one) => isSameTaint(one, taint)));
  const tainted = taints.some(
    (taint) =>
      isLifecycleTaint(taint) && taint.effect === 'NoSchedule' && !present.some((one) => isSameTaint(one, taint)),
  );
  const explanation =
    ready === 'True' && untainted
      ? readinessChange(node, 'NodeReady')
      : ready === 'False' && tainted
        ? readinessChange(node, 'NodeNotReady')
        : { why: 'the taints do not match the conditions of the node' };
  return [{ ...patchNode(node, { spec: { taints: taints.length === 0 ? null : taints } }), ...explanation }];
}

/** Patches a node in the observed version only, because it may have reported or may have been tainted since. */
function patchNode({ metadata }: Stored<EngineNode>, body: object): Omit<PatchChange, 'why'> {
  const { name, uid, resourceVersion } = metadata;
  const patch = { type: 'strategic' as const, body: { ...body, metadata: { resourceVersion } } };
  return { do: 'patch', type: ENGINE_NODES, name: { name }, uid, patch };
}

function readinessChange({ metadata }: Stored<EngineNode>, reason: 'NodeReady' | 'NodeNotReady') {
  return { reason, why: `Node ${metadata.name} status is now: ${reason}` };
}
